//! `outrider-bench capacity`: how many clients a verifier holds at a fixed rate each, by where drafters are.

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use client::Client;
use futures_util::future::try_join_all;
use outrider::measure::{self, BASELINE, RequestTotals};
use outrider::{connect, progress};

use crate::distance::{HostPlan, Hosts, Link, Pace};
use crate::ranges;
use crate::report::{BenchReport, number, text};
use crate::spec::MeasuredMethod;

#[derive(Clone, Debug, Args)]
pub(super) struct CapacityArgs {
    /// Clients at once, ascending; the most that all get the rate is what a verifier holds.
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1,2,3,4,6,8,10,12,14,16,18,20,22,24,28,32"
    )]
    clients: Vec<usize>,
    /// Tokens a second that every client is to get.
    #[arg(long, value_name = "RATE", default_value_t = 40.0)]
    rate: f64,
    /// Milliseconds of a round trip to drafters on other hosts.
    #[arg(long, value_name = "MS", default_value_t = 1.0)]
    round_trip: f64,
    /// Output tokens of a request.
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_tokens: u32,
    /// Temperature.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    #[command(flatten)]
    pace: Pace,
}

/// Where drafters and verifiers are, what that is called, and how drafts are made there.
struct Place {
    name: &'static str,
    plan: HostPlan,
    method: &'static str,
}

/// Where drafter and verifier wait for the same host, they take turns.
const ROUNDS: &str = "coupled:schedule=rounds:drafting=model";
const STREAM: &str = "coupled:schedule=stream:drafting=model";

fn places(link: Link) -> [Place; 5] {
    let plan = |drafters, verifiers, is_beside| HostPlan {
        link,
        drafters,
        verifiers,
        is_beside,
    };
    let place = |name, plan, method| Place { name, plan, method };
    [
        place("no drafter", plan(1, 1, false), BASELINE),
        place("one beside the verifier", plan(1, 1, true), ROUNDS),
        place("one on another host", plan(1, 1, false), STREAM),
        place("three on other hosts", plan(3, 1, false), STREAM),
        place("one for three verifiers", plan(1, 3, false), STREAM),
    ]
}

/// Measures.
pub(super) async fn run(args: &CapacityArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    ranges::clients(&args.clients)?;
    ranges::temperature("temperature", args.temperature)?;
    args.pace.check()?;
    ensure!(args.rate > 0.0, "--rate: expected more than 0");
    report.title(format!("Clients that get {} tokens/s each", args.rate));
    let link = Link {
        one_way: Duration::from_secs_f64(args.round_trip / 2e3),
        jitter: 0.1,
        late: 0.0,
    };
    for place in places(link) {
        let method = MeasuredMethod::parse(place.method)?;
        let hosts = Hosts::start(args.pace, place.plan).await?;
        let client = connect::within(&hosts.url)?;
        let mut held = 0;
        for &clients in &args.clients {
            progress::show(&format!("{}: {clients} clients", place.name))?;
            let before = hosts.forwards();
            let slowest = slowest(args, &client, &method, clients).await?;
            let after = hosts.forwards();
            let [target, draft] = [0, 1].map(|model| (after[model] - before[model]) as f64);
            report.row(
                "clients",
                vec![
                    text("drafters", place.name),
                    number("clients", clients as f64, 0),
                    number("slowest", slowest, 1).called("slowest, tokens/s"),
                    number("gamma", draft / target.max(1.0), 1).called("draft forwards a forward"),
                ],
            )?;
            if slowest < args.rate {
                break;
            }
            held = clients;
        }
        let row = vec![
            text("drafters", place.name),
            number("held", held as f64, 0).called("clients held"),
        ];
        report.row("capacity", row)?;
        hosts.stop();
    }
    report.note(args.pace.to_string());
    report.note(format!(
        "a round trip to other hosts takes {} ms; T={}, {} tokens a request",
        args.round_trip, args.temperature, args.max_tokens
    ));
    Ok(())
}

/// Has so many clients ask at once; the rate of the one that got the least.
async fn slowest(
    args: &CapacityArgs,
    client: &Client,
    method: &MeasuredMethod,
    clients: usize,
) -> anyhow::Result<f64> {
    let asking = (0..clients as u64).map(|seed| async move {
        let prompt = format!("Once upon a time {seed}");
        let mut request = measure::request(&prompt, args.max_tokens, args.temperature, seed);
        request.ignore_eos = true;
        method.apply_with(None, &mut request);
        let answer = measure::measure(client, method, request).await?;
        let totals = RequestTotals::of(&answer.finished);
        anyhow::Ok((totals.tokens - 1.0) * 1e3 / (totals.total_ms - totals.first_token_ms))
    });
    let rates = try_join_all(asking).await?;
    Ok(rates.into_iter().fold(f64::INFINITY, f64::min))
}
