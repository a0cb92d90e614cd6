//! `outrider-bench laws`: what acceptance costs by itself, without a model.
//!
//! Counted is what a verifier does between its rows being laws and its verdict, through the shipped
//! `Round` and `verify`: reading the proposals, the target model's confidence where the rule needs
//! one, the target distribution, the accept tests, the residual and its draw. Not counted: the
//! forward, and the softmax that makes a law of a logits row. That softmax is the unit: the shipped
//! pipeline at temperature 1 without cuts (largest logit, a look for NaN, exponential, sum, division).

mod case;
mod inputs;
mod table;

use std::io::Write;

use anstream::{eprintln, stdout};
use anyhow::ensure;
use clap::Args;

use case::Case;
use inputs::Inputs;

/// Arguments of `outrider-bench laws`.
#[derive(Debug, Args)]
pub(super) struct LawsArgs {
    /// Vocabulary sizes.
    #[arg(
        long,
        value_name = "VS",
        value_delimiter = ',',
        default_value = "4096,32000,152000"
    )]
    vocab: Vec<usize>,
    /// Times that each figure is measured, between softmaxes of the same run; the median counts.
    #[arg(long, value_name = "N", default_value_t = 21)]
    repeats: usize,
    /// Different blocks of four draft tokens that one measurement goes through.
    #[arg(long, value_name = "N", default_value_t = 6)]
    blocks: usize,
    /// Prints one JSON object a line instead of tables. A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) fn run(args: &LawsArgs) -> anyhow::Result<()> {
    ensure!(
        args.repeats > 0,
        "--repeats: 0 is out of range, expected at least 1"
    );
    ensure!(
        args.blocks > 0,
        "--blocks: 0 is out of range, expected at least 1"
    );
    for &vocab in &args.vocab {
        ensure!(
            (case::LEAST_VOCAB..=inputs::MOST_VOCAB).contains(&vocab),
            "--vocab: {vocab} is out of range, expected {} to {}",
            case::LEAST_VOCAB,
            inputs::MOST_VOCAB
        );
        eprintln!("V={vocab}: making laws");
        let mut inputs = Inputs::new(vocab, args.blocks);
        let mut measured = Vec::new();
        for case in Case::all() {
            let figures = case.measure(&mut inputs, args.repeats)?;
            if args.json {
                let mut out = stdout().lock();
                writeln!(out, "{}", table::json(&inputs, &case, &figures))?;
                out.flush()?;
            }
            measured.push((case, figures));
        }
        if !args.json {
            table::write(&mut stdout().lock(), &inputs, &measured)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_over_a_small_vocabulary() {
        let mut inputs = Inputs::new(64, 3);
        assert!((0.2..1.0).contains(&inputs.overlap()));
        let cases = Case::all();
        // Exact, two lossy and ten rules, under four verifications, with two forms but for the rule
        // that needs the whole law.
        assert_eq!(cases.len(), (12 * 2 + 1) * 4);
        let mut measured = Vec::new();
        for case in cases {
            let figures = case.measure(&mut inputs, 2).expect("measured");
            // Between one position a block and all of them.
            assert!((3..=15).contains(&figures.positions), "{case:?}");
            let line = table::json(&inputs, &case, &figures);
            assert!(line["ratio"].as_f64().expect("a number") > 0.0);
            measured.push((case, figures));
        }
        let mut text = Vec::new();
        table::write(&mut text, &inputs, &measured).expect("written");
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains("token-v3") && text.contains("V=64"), "{text}");
    }
}
