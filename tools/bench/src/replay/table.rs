//! Rows, as a table or as JSON.

use std::io::{self, Write};

use anstream::stdout;
use serde_json::{Map, Value, json};

use super::choices::{Calls, Row};
use super::evaluation::Figures;
use super::load::{Recording, Summary};

/// The figures of a row over one kind of prompt, or all.
#[derive(Clone, Debug)]
pub(super) struct KindFigures {
    pub(super) kind: String,
    pub(super) figures: Figures,
}

/// Prints what the recording is, and how far its cut can be trusted.
///
/// # Errors
/// If nobody can read it. So for the functions that follow.
pub(super) fn print_recording(
    recording: &Recording,
    summary: &Summary,
    as_json: bool,
) -> io::Result<()> {
    let mut out = stdout().lock();
    let header = &recording.header;
    let sampling = header.sampling.clone().unwrap_or_default();
    let (temperature, top_p) = (sampling.temperature.unwrap_or(1.0), sampling.top_p());
    let expected = &summary.expected;
    let expectation = expected.block_efficiency.unwrap_or_default();
    let error = expected.efficiency_error.unwrap_or_default();
    if as_json {
        let left_out = |(mean, most): (f64, f64)| json!({ "mean": mean, "most": most });
        let object = json!({ "recording": {
            "model": header.model,
            "vocab_size": header.vocab_size,
            "temperature": temperature,
            "top_k": sampling.top_k,
            "top_p": top_p,
            "min_p": sampling.min_p,
            "draft_len": header.draft_len,
            "seed": header.seed,
            "top": header.top,
            "prompts": summary.prompts,
            "prompts_planned": header.prompts,
            "blocks": expected.blocks,
            "positions": expected.positions,
            "draft_mass_left_out": left_out(summary.draft_rest),
            "target_mass_left_out": left_out(summary.target_rest),
            "measured_block_efficiency": summary.measured_efficiency,
            "expected_block_efficiency": expectation,
            "expected_block_efficiency_error": error,
        }});
        return writeln!(out, "{object}");
    }
    writeln!(
        out,
        "recorded: model {}, temperature {temperature}, draft length {}, seed {}; {} blocks, {} \
         positions, of {} prompts out of {}",
        header.model,
        header.draft_len,
        header.seed,
        expected.blocks,
        expected.positions,
        summary.prompts,
        header.prompts
    )?;
    let kept = match header.top {
        0 => "whole laws".to_owned(),
        top => format!("the {top} most likely tokens"),
    };
    writeln!(
        out,
        "laws: {kept} of each model; left out of q {:.2e} on average, {:.2e} at worst, of p {:.2e}, {:.2e}",
        summary.draft_rest.0, summary.draft_rest.1, summary.target_rest.0, summary.target_rest.1
    )?;
    writeln!(
        out,
        "check: the generation had block efficiency {:.4}; its laws expect {expectation:.4}, standard \
         error {error:.4}\n",
        summary.measured_efficiency
    )
}

/// Prints the table's heading.
pub(super) fn print_heading(as_json: bool) -> io::Result<()> {
    if as_json {
        return Ok(());
    }
    writeln!(
        stdout().lock(),
        "{:<14} {:<24} {:<12} {:<10} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "method",
        "parameters",
        "verification",
        "prompts",
        "positions",
        "blocks",
        "accept",
        "reject",
        "defer",
        "calls",
        "effic.",
        "TV(π,p)",
        "TV(q,p)"
    )
}

/// Prints one row.
pub(super) fn print_row(row: &Row, result: &KindFigures, as_json: bool) -> io::Result<()> {
    let mut out = stdout().lock();
    let KindFigures { kind, figures } = result;
    let calls = calls(row, figures);
    if as_json {
        let parameters = row.parameters.iter();
        let parameters: Map<String, Value> = parameters
            .map(|(name, value)| ((*name).to_owned(), parsed(value)))
            .collect();
        let object = json!({
            "method": row.name,
            "parameters": parameters,
            "verification": row.verification.map(|_| row.verification()),
            "kind": kind,
            "positions": figures.positions,
            "blocks": figures.blocks,
            "acceptance": figures.acceptance,
            "rejection_rate": figures.rejection_rate,
            "deferral_rate": figures.deferral_rate,
            "target_calls_per_token": calls,
            "block_efficiency": figures.block_efficiency,
            "tv_from_target": figures.from_target,
            "tv_draft_target": figures.between,
        });
        return writeln!(out, "{object}");
    }
    let parameters: Vec<String> = (row.parameters.iter())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let number = |figure: Option<f64>| match figure {
        Some(figure) => format!("{figure:.4}"),
        None => "-".to_owned(),
    };
    writeln!(
        out,
        "{:<14} {:<24} {:<12} {kind:<10} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7.4} {:>7.4}",
        row.name,
        parameters.join(" "),
        row.verification(),
        figures.positions,
        figures.blocks,
        number(figures.acceptance),
        number(figures.rejection_rate),
        number(figures.deferral_rate),
        number(calls),
        number(figures.block_efficiency),
        figures.from_target,
        figures.between,
    )
}

/// Target forwards by output tokens.
fn calls(row: &Row, figures: &Figures) -> Option<f64> {
    match row.calls {
        Calls::Block => figures.block_efficiency.map(|efficiency| 1.0 / efficiency),
        Calls::Deferred => figures.deferral_rate,
        Calls::Always => Some(1.0),
    }
}

/// A number where it is one.
fn parsed(value: &str) -> Value {
    value
        .parse::<f64>()
        .map_or_else(|_| json!(value), Value::from)
}
