//! Figures as rows of a table, and what the recording says of itself.

use serde_json::{Map, Value, json};

use super::choices::{ReplayRow, TargetCalls};
use super::evaluation::ReplayFigures;
use super::load::{Recording, Summary};
use crate::report::{self, number, only_json, text};

/// The figures of a row over one kind of prompt, or all.
#[derive(Clone, Debug)]
pub(super) struct KindFigures {
    pub(super) kind: String,
    pub(super) figures: ReplayFigures,
}

/// What the recording is, and how far its cut can be trusted.
pub(super) fn of_recording(recording: &Recording, summary: &Summary) -> report::Row {
    let header = &recording.header;
    let sampling = header.sampling.clone().unwrap_or_default();
    let ReplayFigures {
        blocks,
        positions,
        block_efficiency,
        efficiency_error,
        ..
    } = summary.expected;
    let left_out = |key, (mean, most): (f64, f64)| {
        let said = format!("{mean:.2e}, at worst {most:.2e}");
        text(key, json!({ "mean": mean, "most": most })).said(said)
    };
    vec![
        text("model", header.model.clone()),
        only_json("vocab_size", header.vocab_size),
        text("temperature", sampling.temperature.unwrap_or(1.0)),
        only_json("top_k", sampling.top_k),
        only_json("top_p", sampling.top_p()),
        only_json("min_p", sampling.min_p),
        text("draft_len", header.draft_len),
        text("seed", header.seed),
        text("top", header.top),
        text("prompts", summary.prompts),
        text("prompts_planned", header.prompts).called("of"),
        text("blocks", blocks),
        text("positions", positions),
        left_out("draft_mass_left_out", summary.draft_rest).called("left out of q"),
        left_out("target_mass_left_out", summary.target_rest).called("left out of p"),
        number("measured_block_efficiency", summary.measured_efficiency, 4).called("effic."),
        number("expected_block_efficiency", block_efficiency, 4).called("expected"),
        number("expected_block_efficiency_error", efficiency_error, 4).called("error"),
    ]
}

/// One row.
pub(super) fn fields(row: &ReplayRow, result: &KindFigures) -> report::Row {
    let KindFigures { kind, figures } = result;
    let parameters = row.parameters.iter();
    let words: Vec<String> = parameters
        .clone()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let parameters: Map<String, Value> = parameters
        .map(|(name, value)| ((*name).to_owned(), parsed(value)))
        .collect();
    let verification = row.verification.map(|_| row.verification());
    vec![
        text("method", row.name),
        text("parameters", parameters).said(words.join(" ")),
        text("verification", verification),
        text("kind", kind.clone()).called("prompts"),
        text("positions", figures.positions),
        text("blocks", figures.blocks),
        number("acceptance", figures.acceptance, 4).called("accept"),
        number("rejection_rate", figures.rejection_rate, 4).called("reject"),
        number("deferral_rate", figures.deferral_rate, 4).called("defer"),
        number("target_calls_per_token", calls(row, figures), 4).called("calls"),
        number("block_efficiency", figures.block_efficiency, 4).called("effic."),
        number("tv_from_target", figures.from_target, 4).called("TV(π,p)"),
        number("kl_from_target", figures.divergence, 4).called("KL(p‖π)"),
        number("tv_draft_target", figures.between, 4).called("TV(q,p)"),
    ]
}

/// Target forwards by output tokens.
fn calls(row: &ReplayRow, figures: &ReplayFigures) -> Option<f64> {
    match row.calls {
        TargetCalls::Block => figures.block_efficiency.map(|efficiency| 1.0 / efficiency),
        TargetCalls::Deferred => figures.deferral_rate,
        TargetCalls::Always => Some(1.0),
    }
}

/// A number where it is one.
fn parsed(value: &str) -> Value {
    value
        .parse::<f64>()
        .map_or_else(|_| json!(value), Value::from)
}
