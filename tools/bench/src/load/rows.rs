//! The rows of the tables.

use super::clients::WindowSample;
use crate::report::{ReportField, Row, number, only_json, percent, text};
use crate::timing::median;

/// The least tokens/s of the default, as a share of target-only's.
pub(super) const GOAL: f64 = 0.97;

/// The samples of both sides in one turn.
pub(super) struct LoadTurn {
    pub(super) baseline: WindowSample,
    pub(super) method: WindowSample,
}

/// The values of `labels`, for a line of progress.
pub(super) fn in_words(labels: &Row) -> String {
    let words = labels.iter().map(ReportField::shown);
    words.collect::<Vec<_>>().join(", ")
}

/// The tokens and times of both sides, and their ratios.
pub(super) fn load(labels: Row, turns: &[LoadTurn], clients: usize) -> Row {
    let median_of = |of: fn(&LoadTurn) -> f64| median(turns.iter().map(of).collect());
    let ratios = |of: fn(&WindowSample) -> f64| -> Vec<f64> {
        let ratio = |turn: &LoadTurn| of(&turn.method) / of(&turn.baseline).max(f64::MIN_POSITIVE);
        turns.iter().map(ratio).collect()
    };
    let speeds = ratios(|sample| sample.tokens_per_second);
    let ratio = median(speeds.clone());
    let figures = [
        number(
            "baseline_tokens_per_second",
            median_of(|turn| turn.baseline.tokens_per_second),
            0,
        )
        .called("target tokens/s"),
        number(
            "tokens_per_second",
            median_of(|turn| turn.method.tokens_per_second),
            0,
        )
        .called("tokens/s"),
        number("ratio", ratio, 2).missed(ratio < GOAL),
        only_json("ratios", speeds),
        only_json("series", in_words(&labels[..3].to_vec())),
        only_json("log2_clients", (clients as f64).log2()),
        only_json("percent", 100.0 * ratio),
        number(
            "baseline_token_ms_p99",
            median_of(|turn| turn.baseline.token_ms_p99),
            2,
        )
        .called("target p99, ms"),
        number(
            "token_ms_p99",
            median_of(|turn| turn.method.token_ms_p99),
            2,
        )
        .called("p99, ms"),
        number("p99_ratio", median(ratios(|sample| sample.token_ms_p99)), 2),
    ];
    labels.into_iter().chain(figures).collect()
}

/// Where the time of rounds with drafts went.
pub(super) fn rounds(labels: Row, sample: &WindowSample) -> Row {
    let mut row = labels;
    let WindowSample {
        rounds, lengths, ..
    } = sample;
    row.extend([
        percent("rested", lengths.rested, 0),
        number("predicted_gain", lengths.predicted_gain, 2),
        number("measured_gain", lengths.measured_gain, 2),
        text("rounds", rounds.count),
        number("drafted", rounds.drafted, 1),
        number("accepted", rounds.accepted, 1),
    ]);
    for (peer, share) in ["draft", "verify"].into_iter().zip(rounds.peers) {
        row.extend([
            number(format!("{peer}_ms"), share.whole_ms, 2),
            number(format!("{peer}_queue_ms"), share.queue_ms, 2).called("queue"),
            number(format!("{peer}_forward_ms"), share.forward_ms, 2).called("forwards"),
            number(format!("{peer}_batch"), share.batch, 1).called("batch"),
        ]);
    }
    row
}
