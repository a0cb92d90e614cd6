//! `outrider-bench verification`: what acceptance costs by itself, without a model.
//!
//! Counted is what a verifier does between its rows being distributions and its verdict, through the shipped
//! `Round` and `verify`: reading the proposals, the target model's confidence where the rule needs
//! one, the target distribution, the accept tests, the residual and its draw. Not counted: the
//! forward, and the softmax that makes a distribution of a logits row. That softmax is the unit: the shipped
//! pipeline at temperature 1 without cuts (largest logit, a look for NaN, exponential, sum, division).
//!
//! A second table has what that pipeline costs with cuts or penalties, in the same unit.

mod case;
mod cuts;
mod inputs;

use anstream::eprintln;
use anyhow::ensure;
use clap::Args;
use speculation::methods::names;

use crate::ranges;
use crate::report::{BenchReport, Row, number, only_json, text};
use crate::timing::median;
use case::{VerificationCase, VerificationTimes, choosable, goal};
use cuts::RowCut;
use inputs::VerificationInputs;

/// Arguments of `outrider-bench verification`.
#[derive(Debug, Args)]
pub(super) struct VerificationArgs {
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
}

/// Measures.
pub(super) fn run(args: &VerificationArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    ranges::at_least_one([("repeats", args.repeats), ("blocks", args.blocks)])?;
    report.title("A position as a multiple of one softmax");
    for &vocab in &args.vocab {
        ensure!(
            (case::LEAST_VOCAB..=inputs::MOST_VOCAB).contains(&vocab),
            "--vocab: {vocab} is out of range, expected {} to {}",
            case::LEAST_VOCAB,
            inputs::MOST_VOCAB
        );
        eprintln!("V={vocab}: making distributions");
        let mut inputs = VerificationInputs::new(vocab, args.blocks);
        measure(&mut inputs, args.repeats, report)?;
        measure_cuts(&mut inputs, args.repeats, report)?;
    }
    let goals =
        choosable().map(|verification| format!("{} {}", verification.name, goal(verification)));
    let goals: Vec<String> = goals.collect();
    report.note(format!("* above its goal: {}", goals.join(", ")));
    Ok(())
}

/// Measures all cases over one vocabulary.
fn measure(
    inputs: &mut VerificationInputs,
    repeats: usize,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let mut softmaxes = Vec::new();
    for case in VerificationCase::all() {
        let figures = case.measure(inputs, repeats)?;
        softmaxes.push(figures.softmax_us);
        report.row("verification", row(inputs, &case, &figures))?;
    }
    report.note(format!(
        "V={}: one softmax takes {:.2} us; distributions overlap by {:.2}.",
        inputs.vocab,
        median(softmaxes),
        inputs.overlap()
    ));
    Ok(())
}

/// Measures cuts and penalties over one vocabulary.
fn measure_cuts(
    inputs: &mut VerificationInputs,
    repeats: usize,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    for cut in RowCut::all() {
        let figures = cut.measure(inputs, repeats);
        let row = vec![
            text("cut", cut.name),
            text("vocab", inputs.vocab).called("V").across(),
            only_json("softmax_us", figures.softmax_us),
            only_json("row_us", figures.row_us),
            number("ratio", figures.ratio, 2)
                .missed(figures.ratio > cut.goal)
                .cell(),
        ];
        report.row("cuts", row)?;
    }
    Ok(())
}

fn row(inputs: &VerificationInputs, case: &VerificationCase, figures: &VerificationTimes) -> Row {
    let verification = case.choice.verification.name;
    let proposal = names::of_proposal(case.choice.proposal);
    vec![
        text("target", case.target.clone()),
        text("vocab", inputs.vocab).called("V"),
        text("verification", verification).across(),
        text("proposal", proposal).across(),
        only_json("positions", figures.positions),
        only_json("softmax_us", figures.softmax_us),
        only_json("position_us", figures.position_us),
        number("ratio", figures.ratio, 2)
            .missed(figures.ratio > case.goal)
            .cell(),
        only_json("goal", case.goal),
        only_json("overlap", inputs.overlap()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_over_a_small_vocabulary() {
        let mut inputs = VerificationInputs::new(64, 3);
        assert!((0.2..1.0).contains(&inputs.overlap()));
        let mut report = BenchReport::quiet();
        measure(&mut inputs, 2, &mut report).expect("measured");
        measure_cuts(&mut inputs, 2, &mut report).expect("measured");
        assert_eq!(report.objects("cuts").len(), RowCut::all().len());
        let rows = report.objects("verification");
        // Exact, two lossy and ten rules, under four verifications, with two forms but for the rule
        // that needs the whole distribution.
        assert_eq!(rows.len(), (12 * 2 + 1) * 4);
        for row in &rows {
            // Between one position a block and all of them.
            let positions = row["positions"].as_u64().expect("a count");
            assert!((3..=15).contains(&positions), "{row}");
            assert!(row["ratio"].as_f64().expect("a number") > 0.0);
        }
        let text = report.text();
        assert!(text.contains("token-v3") && text.contains("V=64"), "{text}");
        // A row for each target.
        let lines = text.lines().filter(|line| line.starts_with('|'));
        assert_eq!(lines.count(), 2 + 13 + 2 + RowCut::all().len());
    }
}
