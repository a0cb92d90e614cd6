//! `outrider-bench distance`: what a draft brings whose drafter is far away.

mod args;
mod hosts;
mod link;
mod paced;

use std::time::Duration;

use client::Client;
use outrider::measure::{self, BASELINE, RequestTotals};
use outrider::{connect, progress};

pub(super) use self::args::DistanceArgs;
pub(super) use self::hosts::{HostPlan, Hosts};
pub(super) use self::link::Link;
pub(super) use self::paced::Pace;
use crate::report::{BenchReport, Plot, PlotAxis, ReportField, Row, number, text};
use crate::spec::MeasuredMethod;

/// What the requests of one way took.
#[derive(Clone, Debug, Default)]
struct Measured {
    token_ms: f64,
    totals: RequestTotals,
    /// Draft tokens proposed while the target decoded.
    proposed: f64,
    bytes: f64,
    /// Processor milliseconds a token, of the services and their client.
    processor_ms: f64,
}

/// Measures.
pub(super) async fn run(args: &DistanceArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    args.check()?;
    report.title("A drafter far away: ms a token");
    let ways = args.ways()?;
    for &round_trip in &args.round_trips {
        let link = Link {
            one_way: Duration::from_secs_f64(round_trip / 2e3),
            jitter: args.jitter,
            late: args.late,
        };
        let hosts = Hosts::start(args.pace, HostPlan::apart(link)).await?;
        let client = connect::within(&hosts.url)?;
        for &temperature in &args.temperatures {
            let labels = [
                text("round_trip_ms", round_trip).called("round trip, ms"),
                text("temperature", temperature),
            ];
            measure_all(
                args,
                (&client, &hosts),
                temperature,
                (&labels, &ways),
                report,
            )
            .await?;
        }
        hosts.stop();
    }
    report.note(args.pace.to_string());
    report.note(format!(
        "median of {} requests of {} tokens; chain and tree: the best of {:?} tokens a round, the trees with {} \
         alternates; times vary by {}, {} of messages are 200 ms late",
        args.repeats, args.max_tokens, args.draft_lens, args.alternates, args.jitter, args.late
    ));
    if let Some(file) = &args.svg {
        let plot = Plot {
            table: "curves",
            caption: "a drafter far away".to_owned(),
            series: "series",
            x: PlotAxis::of("round_trip_ms", "round trip to the drafter, ms"),
            y: PlotAxis::of("best_ms", "ms a token"),
            ..Plot::default()
        };
        std::fs::write(file, report.svg(&plot)?)?;
    }
    Ok(())
}

/// Measures every way at one distance, and reports it.
async fn measure_all(
    args: &DistanceArgs,
    at: (&Client, &Hosts),
    temperature: f32,
    (labels, ways): (&[ReportField], &[(&'static str, MeasuredMethod)]),
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let mut measured: Vec<(&str, &MeasuredMethod, Measured)> = Vec::new();
    for (kind, way) in ways {
        progress::show(&format!("{}: {way}", in_words(labels)))?;
        let mut all = Vec::new();
        for seed in 0..args.repeats as u64 {
            all.push(measure_one(args, at, way, temperature, seed).await?);
        }
        all.sort_by(|one, other| one.token_ms.total_cmp(&other.token_ms));
        measured.push((kind, way, all.swap_remove(all.len() / 2)));
    }
    let best = |wanted: &str| {
        let of_kind = measured.iter().filter(|(kind, ..)| *kind == wanted);
        let best = of_kind.min_by(|one, other| one.2.token_ms.total_cmp(&other.2.token_ms));
        best.map_or(f64::NAN, |(.., measured)| measured.token_ms)
    };
    let [alone, chain, tree, stream, default] =
        [BASELINE, "chain", "tree", "stream", "default"].map(best);
    let streamed = measured.iter().find(|(kind, ..)| *kind == "stream");
    let streamed = streamed.map(|(.., it)| it.clone()).unwrap_or_default();
    let (totals, sent) = (streamed.totals, streamed.proposed);
    let rows = totals.drafted / totals.target_forwards.max(1.0) + 1.0;
    let mut row: Row = labels.to_vec();
    row.extend([
        number("alone_ms", alone, 1).called("target alone"),
        number("chain_ms", chain, 1).called("rounds, chain"),
        number("tree_ms", tree, 1).called("rounds, tree"),
        number("stream_ms", stream, 1).called("stream"),
        number("default_ms", default, 1).called("default"),
        number("over_chain", stream / chain.min(alone), 2).called("over chain or alone"),
        number("over_tree", stream / tree.min(chain).min(alone), 2).called("over all"),
        number(
            "tokens_a_forward",
            totals.tokens / totals.target_forwards.max(1.0),
            2,
        )
        .called("tokens a forward"),
        number("rows", rows, 1).called("rows a forward"),
        number("sent", sent / totals.tokens.max(1.0), 1).called("drafts sent a token"),
        number("bytes_a_token", streamed.bytes / totals.tokens.max(1.0), 0).called("bytes a token"),
    ]);
    report.row("distance", row)?;
    for (series, best_ms) in [
        ("the target alone", alone),
        ("rounds, best chain", chain),
        ("rounds, best tree", tree),
        ("stream", stream),
    ] {
        let mut row: Row = labels.to_vec();
        row.push(text("series", format!("{series}, T={temperature}")));
        row.push(number("best_ms", best_ms, 1).called("best, ms a token"));
        report.row("curves", row)?;
    }
    for (kind, way, it) in &measured {
        let mut row: Row = labels.to_vec();
        row.extend([
            text("kind", *kind),
            text("method", way.to_string()),
            number("token_ms", it.token_ms, 2).called("ms a token"),
            number("processor_ms", it.processor_ms, 2).called("processor ms a token"),
        ]);
        report.row("ways", row)?;
    }
    Ok(())
}

/// Makes one request, and measures it from its first token on.
async fn measure_one(
    args: &DistanceArgs,
    (client, hosts): (&Client, &Hosts),
    way: &MeasuredMethod,
    temperature: f32,
    seed: u64,
) -> anyhow::Result<Measured> {
    let mut request = measure::request("Once upon a time", args.max_tokens, temperature, seed);
    request.ignore_eos = true;
    way.apply_with(None, &mut request);
    let (before, busy) = (hosts.proposed()?, hosts.processor_seconds()?);
    let answer = measure::measure(client, way, request).await?;
    let totals = RequestTotals::of(&answer.finished);
    let speculation = answer.finished.speculation.unwrap_or_default();
    Ok(Measured {
        token_ms: (totals.total_ms - totals.first_token_ms) / (totals.tokens - 1.0).max(1.0),
        proposed: hosts.proposed()? - before,
        processor_ms: (hosts.processor_seconds()? - busy) * 1e3 / totals.tokens.max(1.0),
        totals,
        bytes: speculation.wire_bytes as f64,
    })
}

fn in_words(labels: &[ReportField]) -> String {
    let words = labels.iter().map(ReportField::shown);
    words.collect::<Vec<_>>().join(", ")
}
