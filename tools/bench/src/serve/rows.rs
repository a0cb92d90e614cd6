//! Rows of the report.

use std::collections::BTreeSet;

use super::arrivals::Rate;
use super::drafts::DraftCounts;
use super::load_point::LoadOutcome;
use super::points::Concurrency;
use super::slo::Slo;
use super::spread::Spread;
use super::tally::{Tally, failures};
use crate::report::{ReportField, Row, number, only_json, percent, text};

/// What a load point came to.
#[derive(Debug)]
pub(super) struct MeasuredPoint {
    pub(super) rate: Rate,
    pub(super) at_once: Concurrency,
    pub(super) load: LoadOutcome,
    /// The server's own counters over this time, if they are read and count drafts.
    pub(super) counted: Option<DraftCounts>,
}

impl MeasuredPoint {
    /// Returns the milliseconds after its time at which the latest request was sent; none where requests have no times.
    pub(super) fn late_ms(&self) -> Option<f64> {
        (self.rate != Rate::Unlimited).then(|| self.load.late_ms())
    }

    /// Returns which load point it is.
    fn labels(&self) -> Row {
        let rate = match self.rate {
            Rate::PerSecond(rate) => number("rate", rate, 2),
            Rate::Unlimited => text("rate", ()).said("inf".to_owned()),
        };
        let at_once = text("concurrency", self.at_once.0);
        let at_once = match self.at_once.0 {
            Some(_) => at_once,
            None => at_once.said("inf".to_owned()),
        };
        vec![rate, at_once]
    }

    /// Returns the row of throughput, goodput and drafts, of the sums of all its requests.
    pub(super) fn load(&self, tally: &Tally, slo: Option<Slo>) -> Row {
        let seconds = self.load.seconds();
        let per_second = |count: f64| (seconds > 0.0).then(|| count / seconds);
        let requests_per_second = per_second(tally.completed as f64);
        let offered = match self.rate {
            Rate::PerSecond(rate) => Some(rate),
            Rate::Unlimited => requests_per_second,
        };
        let series = match self.at_once.0 {
            Some(at_once) => format!("concurrency {at_once}"),
            None => "no limit".to_owned(),
        };
        let (drafts, source) = match (tally.drafts, self.counted) {
            (Some(drafts), _) => (Some(drafts), "answers"),
            (None, Some(drafts)) => (Some(drafts), "metrics"),
            (None, None) => (None, "not told"),
        };
        let ended = (tally.completed + tally.failed) as f64;
        let mut row = self.labels();
        row.extend([
            text("completed", tally.completed),
            text("failed", tally.failed),
            number("seconds", seconds, 1),
            number("requests_per_second", requests_per_second, 2).called("requests/s"),
            number(
                "input_tokens_per_second",
                tally.input_tokens.and_then(per_second),
                0,
            )
            .called("input tokens/s"),
            number(
                "output_tokens_per_second",
                per_second(tally.output_tokens),
                1,
            )
            .called("output tokens/s"),
            number("tokens_per_event", tally.tokens_per_event(), 2).called("tokens/event"),
        ]);
        if slo.is_some() {
            let within = tally.within as f64;
            row.extend([
                number("goodput_per_second", per_second(within), 2).called("goodput, requests/s"),
                percent("within_slo", (ended > 0.0).then(|| within / ended), 1).called("within"),
            ]);
        }
        row.extend(drafts_of(drafts));
        let mean = |tokens: f64| tokens / tally.completed.max(1) as f64;
        row.extend([
            only_json("input_tokens", tally.input_tokens.map(mean)),
            only_json("output_tokens", mean(tally.output_tokens)),
            only_json("drafts_told_by", source),
            only_json("drafted", drafts.map(|drafts| drafts.drafted)),
            only_json("accepted", drafts.map(|drafts| drafts.accepted)),
            only_json("late_ms_max", self.late_ms()),
            only_json("ttft_ms_p99", tally.ttft.map(|ttft| ttft.p99)),
            only_json("offered_per_second", offered),
            only_json("series", series),
        ]);
        row
    }

    /// Returns the rows of times.
    pub(super) fn latencies(&self, tally: &Tally) -> Vec<Row> {
        let measures = [
            ("ttft", "time to first token", tally.ttft, 1),
            ("tpot", "time per output token", tally.tpot, 2),
            ("itl", "time between events", tally.gaps, 2),
            ("e2e", "whole request", tally.e2e, 1),
        ];
        let rows = measures.into_iter().map(|(key, name, spread, decimals)| {
            let ms = |of: fn(&Spread) -> f64| spread.as_ref().map(of);
            let mut row = self.labels();
            row.extend([
                text("measure", key).said(name.to_owned()),
                text("count", spread.map_or(0, |spread| spread.count)).called("measured"),
                number("mean_ms", ms(|it| it.mean), decimals).called("mean, ms"),
                number("median_ms", ms(|it| it.median), decimals).called("median"),
                number("p90_ms", ms(|it| it.p90), decimals).called("p90"),
                number("p99_ms", ms(|it| it.p99), decimals).called("p99"),
            ]);
            row
        });
        rows.collect()
    }

    /// Returns a row for each kind of prompt, in the order of their names.
    pub(super) fn kinds(&self, slo: Slo) -> Vec<Row> {
        let outcomes = &self.load.outcomes;
        let kinds: BTreeSet<&str> = outcomes.iter().map(|it| it.kind.as_str()).collect();
        let rows = kinds.into_iter().map(|kind| {
            let of_kind = outcomes.iter().filter(|outcome| outcome.kind == kind);
            let tally = Tally::of(of_kind, slo);
            let seconds = tally.request_seconds;
            let speed = (seconds > 0.0).then(|| tally.output_tokens / seconds);
            let mut row = self.labels();
            row.extend([
                text("kind", kind),
                text("completed", tally.completed),
                text("failed", tally.failed),
                number("tokens", tally.output_tokens, 0).called("output tokens"),
                number("tokens_per_second", speed, 1).called("tokens/s of a request"),
                number("ttft_ms", tally.ttft.map(|it| it.mean), 1).called("ttft, ms"),
                number("tpot_ms", tally.tpot.map(|it| it.mean), 2).called("tpot, ms"),
            ]);
            row.extend(drafts_of(tally.drafts));
            row
        });
        rows.collect()
    }

    /// Returns a row for each reason for which requests failed.
    pub(super) fn failures(&self) -> Vec<Row> {
        let rows = failures(&self.load.outcomes).into_iter();
        let rows = rows.map(|(reason, (count, first))| {
            let mut row = self.labels();
            row.extend([
                text("reason", reason),
                text("failed", count),
                text("first", first).called("the first one"),
            ]);
            row
        });
        rows.collect()
    }
}

/// The share of draft tokens that were accepted, and the tokens of a round.
fn drafts_of(drafts: Option<DraftCounts>) -> [ReportField; 2] {
    let acceptance = percent(
        "draft_acceptance_rate",
        drafts.and_then(|it| it.acceptance()),
        1,
    )
    .called("accepted");
    let acceptance = match drafts {
        Some(_) => acceptance,
        None => acceptance.said("not told".to_owned()),
    };
    let tokens = drafts.and_then(|it| it.tokens_per_round());
    [
        acceptance,
        number("mean_acceptance_length", tokens, 2).called("tokens/round"),
    ]
}
