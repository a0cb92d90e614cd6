//! `outrider-bench replay`: methods evaluated on recorded distributions, without any model.
//!
//! A recording holds draft blocks of real text, and at each draft token both models' distributions. From these
//! follows, for any target distribution and verification, the probability of every outcome: nothing
//! is drawn here, everything is added up in double precision through the functions that serve.

mod choices;
mod evaluation;
mod load;
mod rows;
mod table;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

use crate::report::BenchReport;
use choices::ReplayRow;
use evaluation::Evaluation;
use load::Recording;
use table::KindFigures;

/// Arguments of `outrider-bench replay`.
///
/// Without a method it evaluates every target distribution, deferral rules at their default alpha,
/// under every verification. For a trade-off curve, sweep alpha:
///
///   outrider-bench replay FILE --method spec-cascade --rule chow,opt --alpha 0.1,0.3,0.5,0.7,0.9
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(after_long_help = "\
Columns:
  accept     mean acceptance of a draft token: the sum of min(q, π) where distributions are compared,
             the coupling's probability for `coupled`
  reject     refused draft tokens by tested ones, expected
  defer      mean deferral: δ of rules that judge positions, η of those that judge tokens
  calls      target forwards by output tokens
  effic.     block efficiency: 1 + expected accepted draft tokens of a block; `mean_acceptance_length`
             in an answer's statistics
  TV(π,p), TV(q,p)   how far the output, and the draft model, is from the target model, a token
  KL(p‖π)    the divergence of the output in nats, which --kl-budget bounds
`accept`, `defer` and distances weigh a position by the probability that exact token verification gets
as far in its block, `reject` and `effic.` by that of the row's own verification.")]
pub(crate) struct ReplayArgs {
    /// A recording, made by `outrider-bench record`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    choice: choices::ChoiceArgs,
    /// Draft tokens a block, at most those recorded; blocks are cut to it.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    draft_len: Option<u32>,
    /// Adds one row for each kind of prompt.
    #[arg(long)]
    by_kind: bool,
}

/// Evaluates.
pub(crate) fn run(args: &ReplayArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    let file = args.file.display();
    let recording = Recording::load(&args.file).with_context(|| format!("{file}"))?;
    let recorded = recording.header.draft_len;
    let draft_len = args.draft_len.unwrap_or(recorded);
    ensure!(
        draft_len <= recorded,
        "--draft-len: {draft_len} is out of range, blocks were recorded with {recorded} draft tokens"
    );
    let sampling = recording.header.sampling.clone().unwrap_or_default();
    let rows = args.choice.rows(&sampling)?;
    let summary = recording.summary()?;
    report.title("Methods on recorded distributions");
    report.row("recording", table::of_recording(&recording, &summary))?;
    for row in &rows {
        for result in evaluate(row, &recording, draft_len as usize, args.by_kind)? {
            report.row("replay", table::fields(row, &result))?;
        }
    }
    Ok(())
}

/// The figures of `row` over each kind of prompt, if wanted, and over all.
fn evaluate(
    row: &ReplayRow,
    recording: &Recording,
    draft_len: usize,
    by_kind: bool,
) -> anyhow::Result<Vec<KindFigures>> {
    let new = || Evaluation::new(row.target, row.verification, recording.is_greedy());
    let mut kinds: Vec<(&str, Evaluation)> = Vec::new();
    let mut all = new();
    for block in &recording.blocks {
        all.add(block, draft_len)?;
        if by_kind {
            let known = kinds.iter().position(|(kind, _)| *kind == block.kind);
            let index = known.unwrap_or_else(|| {
                kinds.push((&block.kind, new()));
                kinds.len() - 1
            });
            kinds[index].1.add(block, draft_len)?;
        }
    }
    let rows = kinds.into_iter().chain([("all", all)]);
    let result = |(kind, evaluation): (&str, Evaluation)| {
        let figures = evaluation.figures().context("no blocks")?;
        Ok(KindFigures {
            kind: kind.to_owned(),
            figures,
        })
    };
    rows.map(result).collect()
}
