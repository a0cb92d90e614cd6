//! `outrider-bench http`: the OpenAI API beside gRPC, on the same services with the same requests.

mod clients;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use coordinator::DefaultDraftLen;
use futures_util::future::try_join_all;
use net::listen::OptionalListen;
use outrider::cluster::Cluster;
use outrider::config::Config;
use outrider::connect;
use outrider::progress;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::clients::{FrontClient, Question};
use crate::load::{SyntheticArgs, name};
use crate::pairs::{self, WhichPair};
use crate::ranges;
use crate::report::{BenchReport, number, text};
use crate::timing::median;

/// The least tokens/s over HTTP, as a share of those over gRPC.
const GOAL: f64 = 0.95;

/// Temperature of all requests.
const TEMPERATURE: f32 = 1.0;

/// Draft tokens of a round: a fixed number, so that both do the same.
const DRAFT_LEN: u32 = 4;

#[derive(Clone, Debug, Args)]
pub(super) struct HttpArgs {
    /// Pairs to measure.
    #[arg(
        long,
        value_name = "PAIRS",
        value_delimiter = ',',
        default_value = "synthetic,embedded"
    )]
    pairs: Vec<WhichPair>,
    /// Numbers of clients.
    #[arg(long, value_name = "NS", value_delimiter = ',', default_value = "1,8")]
    clients: Vec<usize>,
    /// Times that both are measured, in turn.
    #[arg(long, value_name = "N", default_value_t = 9)]
    repeats: usize,
    /// Requests of each client, one after another.
    #[arg(long, value_name = "N", default_value_t = 6)]
    requests: usize,
    /// Output tokens of each request.
    #[arg(long, value_name = "N", default_value_t = 96)]
    max_tokens: u32,
    /// Streams over HTTP that are open at once, each of which is compared with the answer over gRPC.
    #[arg(long, value_name = "N", default_value_t = 200)]
    streams: usize,
    #[command(flatten)]
    synthetic: SyntheticArgs,
}

/// Measures.
pub(super) async fn run(
    args: &HttpArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    ranges::at_least_one([
        ("pairs", args.pairs.len()),
        ("clients", args.clients.len()),
        ("repeats", args.repeats),
        ("requests", args.requests),
        ("max-tokens", args.max_tokens as usize),
    ])?;
    args.synthetic.check()?;
    ensure!(
        args.streams <= 250,
        "--streams: {} is out of range, expected at most 250, for the coordinator takes 256 requests",
        args.streams
    );
    report.title("Streams over HTTP, beside gRPC");
    let mut config = pairs::without_extras(config).on_loopback();
    config.coordinator.http.listen = OptionalListen::on_loopback(0);
    config.coordinator.draft_len = DefaultDraftLen::Fixed(DRAFT_LEN.try_into()?);
    for &which in &args.pairs {
        let (pair, prompts) = args.synthetic.pair(which, TEMPERATURE, report)?;
        let pair = pair.pair()?;
        let stop = CancellationToken::new();
        let starting = Cluster::start_with(config.clone(), pair.draft, pair.target, stop);
        let cluster = Box::pin(starting).await?;
        let bench = HttpBench {
            grpc: FrontClient::Grpc(connect::within(&cluster.coordinator_url)?.into()),
            http: FrontClient::Http(cluster.http.context("no HTTP port")?),
            prompts,
            max_tokens: args.max_tokens,
        };
        for &clients in &args.clients {
            progress::show(&format!("{}: {clients} clients", name(which)))?;
            bench.compare(args, which, clients, report).await?;
        }
        progress::show(&format!("{}: {} streams", name(which), args.streams))?;
        bench.streams(args, which, &cluster, report).await?;
        cluster.stop().await?;
    }
    report.note(format!(
        "ratio: tokens/s over HTTP over those over gRPC, median of {} turns (goal: {GOAL}); draft length {DRAFT_LEN}",
        args.repeats
    ));
    Ok(())
}

struct HttpBench {
    grpc: FrontClient,
    http: FrontClient,
    prompts: Vec<String>,
    max_tokens: u32,
}

impl HttpBench {
    fn question(&self, index: usize) -> Question<'_> {
        Question {
            prompt: &self.prompts[index % self.prompts.len()],
            max_tokens: self.max_tokens,
            seed: index as u64,
        }
    }

    /// Measures both in turn; who comes first changes from one turn to the next.
    async fn compare(
        &self,
        args: &HttpArgs,
        which: WhichPair,
        clients: usize,
        report: &mut BenchReport,
    ) -> anyhow::Result<()> {
        let run = async |client: &FrontClient| {
            self.tokens_per_second(client, clients, args.requests).await
        };
        // A first turn fills caches, and does not count.
        run(&self.grpc).await?;
        run(&self.http).await?;
        let mut turns = Vec::new();
        for turn in 0..args.repeats {
            let mut pair = [&self.grpc, &self.http];
            if turn % 2 == 1 {
                pair.reverse();
            }
            let (first, second) = (run(pair[0]).await?, run(pair[1]).await?);
            turns.push(if turn % 2 == 0 {
                (first, second)
            } else {
                (second, first)
            });
        }
        let of = |of: fn(&(f64, f64)) -> f64| median(turns.iter().map(of).collect());
        let ratio = of(|(grpc, http)| http / grpc);
        let row = vec![
            text("pair", name(which)),
            text("clients", clients),
            number("grpc_tokens_per_second", of(|turn| turn.0), 0).called("gRPC, tokens/s"),
            number("http_tokens_per_second", of(|turn| turn.1), 0).called("HTTP, tokens/s"),
            number("ratio", ratio, 3).missed(ratio < GOAL),
        ];
        Ok(report.row("http", row)?)
    }

    async fn tokens_per_second(
        &self,
        client: &FrontClient,
        clients: usize,
        requests: usize,
    ) -> anyhow::Result<f64> {
        let began = Instant::now();
        let each = (0..clients).map(async |number| {
            let mut tokens = 0;
            for request in 0..requests {
                let answer = client
                    .ask(&self.question(number * requests + request))
                    .await?;
                tokens += answer.tokens;
            }
            anyhow::Ok(tokens)
        });
        let tokens: u32 = try_join_all(each).await?.into_iter().sum();
        Ok(f64::from(tokens) / began.elapsed().as_secs_f64())
    }

    /// Opens many streams at once over HTTP and compares each with the answer over gRPC; then as many again, which
    /// their clients leave.
    async fn streams(
        &self,
        args: &HttpArgs,
        which: WhichPair,
        cluster: &Cluster,
        report: &mut BenchReport,
    ) -> anyhow::Result<()> {
        let questions = self.prompts.len().min(args.streams);
        let mut expected = Vec::new();
        for index in 0..questions {
            expected.push(self.grpc.ask(&self.question(index)).await?);
        }
        let asked = (0..args.streams).map(async |index| {
            let index = index % questions;
            let answer = self.http.ask(&self.question(index)).await?;
            anyhow::Ok(u32::from(answer != expected[index]))
        });
        let others: u32 = try_join_all(asked).await?.into_iter().sum();
        let mut open = Vec::new();
        for index in 0..args.streams {
            open.push(self.http.begin(&self.question(index)).await?);
        }
        let began = Instant::now();
        drop(open);
        while running(cluster)? > 0.0 {
            ensure!(
                began.elapsed() < Duration::from_secs(30),
                "clients that left hold their places"
            );
            sleep(Duration::from_millis(1)).await;
        }
        let row = vec![
            text("pair", name(which)),
            text("streams", args.streams),
            number("others", f64::from(others), 0).called("of which differ"),
            number("freed_ms", began.elapsed().as_secs_f64() * 1e3, 0)
                .called("all freed after they left, ms"),
        ];
        Ok(report.row("streams", row)?)
    }
}

/// Requests under way, as the coordinator counts them.
fn running(cluster: &Cluster) -> anyhow::Result<f64> {
    let figures = cluster.metrics.encode()?;
    let mut lines = figures.lines();
    let line = lines.find(|line| line.starts_with("outrider_requests_running"));
    let value = line.and_then(|line| line.split(' ').next_back());
    Ok(value.context("no requests are counted")?.parse()?)
}
