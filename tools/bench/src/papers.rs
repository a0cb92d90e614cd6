//! `outrider-bench papers`: what the five papers claim, measured on this pair, beside what they print.

mod blocks;
mod cascades;
mod claims;
mod drafters;
mod lengths;
mod statistics;
mod toy;
mod trial;

use std::process::ExitCode;

use anstream::eprintln;
use clap::{Args, ValueEnum};
use client::Client;
use ops::shutdown;

use crate::report::BenchReport;
use outrider::args::ServicesArgs;
use outrider::config::Config;
use outrider::connect;
use outrider::global::INTERRUPTED;
use outrider::progress;

/// Arguments of `outrider-bench papers`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every ratio is of two methods measured in turn on the same prompts and seeds; errors are standard errors over requests, p is that of \
a paired test (Wilcoxon's signed ranks, two-sided): from .05 on a difference shows nothing. The last table says of each claim whether it holds here. The models of the \
papers are not here, so that only directions can be compared, and Table 1 of C, which follows from formulas.

Example: block verification alone, as JSON lines
  outrider-bench papers --only D --json")]
pub(crate) struct PapersArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Papers; without it all.
    #[arg(
        long,
        value_name = "LETTERS",
        value_delimiter = ',',
        ignore_case = true
    )]
    only: Vec<Paper>,
    /// A quarter of the prompts, and fewer settings.
    #[arg(long)]
    quick: bool,
    /// The first seed; prompts and repeats have the ones after it.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Paper {
    /// Narasimhan et al., Faster Cascades via Speculative Decoding (both versions).
    A,
    /// Huang et al., SpecDec++.
    B,
    /// Chen et al., Cascade Speculative Drafting.
    C,
    /// Sun et al., Optimal Block-Level Draft Verification.
    D,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Extent {
    quick: bool,
    seed: u64,
}

impl Extent {
    /// Returns `whole`, or a quarter of it where it is to be quick.
    fn prompts(self, whole: usize) -> usize {
        if self.quick { whole.div_ceil(4) } else { whole }
    }
}

/// Measures.
pub(crate) async fn run(
    args: PapersArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<ExitCode> {
    report.title("The papers' claims, measured");
    let stop = shutdown::on_signal()?;
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client: Client, _: &str| {
        tokio::select! {
            done = measure(&args, &client, report) => done.map(|()| ExitCode::SUCCESS),
            () = stop.cancelled() => {
                eprintln!("interrupted: what was measured until then is printed");
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    };
    connect::ask(coordinator, config, ask).await
}

async fn measure(
    args: &PapersArgs,
    client: &Client,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let extent = Extent {
        quick: args.quick,
        seed: args.seed,
    };
    let mut claims = Vec::new();
    for &paper in Paper::value_variants() {
        if !args.only.is_empty() && !args.only.contains(&paper) {
            continue;
        }
        claims.extend(match paper {
            Paper::A => cascades::measure(client, extent, report).await?,
            Paper::B => lengths::measure(client, extent, report).await?,
            Paper::C => drafters::measure(client, extent, report).await?,
            Paper::D => blocks::measure(client, extent, report).await?,
        });
    }
    progress::clear()?;
    for claim in claims {
        report.row(claims::TABLE, claim.row())?;
    }
    Ok(())
}
