//! `outrider-bench papers`: what the five papers claim, measured on this pair, beside what they print.

mod blocks;
mod cascades;
mod claims;
mod curve;
mod drafters;
mod lengths;
mod resampling;
mod statistics;
mod texts;
mod toy;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use anstream::eprintln;
use clap::{Args, ValueEnum};
use client::Client;
use ops::shutdown;

use crate::report::{BenchReport, Folder, Plot};
use outrider::args::ServicesArgs;
use outrider::config::Config;
use outrider::connect;
use outrider::global::INTERRUPTED;
use outrider::progress;

/// Arguments of `outrider-bench papers`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every ratio is of two methods measured in turn on the same prompts and seeds; errors are standard errors over requests; p is that of a \
paired test, two-sided: Wilcoxon's signed ranks, or the bootstrap where figures are no means of requests. From .05 on a difference shows \
nothing. The last table says of each claim whether it holds here, and if not, why. The models of the papers are not here, so that \
only directions can be compared, and Table 1 of C, which follows from formulas.

Example: block verification alone, as JSON lines
  outrider-bench papers --only D --json

Example: all, with tables as CSV and figures as SVG in a folder
  outrider-bench papers --output papers")]
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
    /// Writes the report to this folder too: report.md, rows.jsonl, each table as CSV, and figures as SVG.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
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
    let folder = args.output.as_deref().map(Folder::create).transpose()?;
    let coordinator = args.services.coordinator.as_deref();
    // The pair that heads are trained for, if it is the one that is measured.
    let is_builtin = coordinator.is_none()
        && config.verifier.model.path == "embedded:target"
        && config.drafter.model.path == "embedded:draft";
    let builtin = is_builtin.then(|| config.clone());
    let ask = async |client: Client, _: &str| {
        tokio::select! {
            done = measure(&args, &client, builtin.as_ref(), report) => done.map(|()| ExitCode::SUCCESS),
            () = stop.cancelled() => {
                eprintln!("interrupted: what was measured until then is printed");
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    };
    let code = connect::ask(coordinator, config, ask).await;
    if let Some(folder) = folder {
        folder.save(report, &figures())?;
    }
    code
}

/// Returns the figures of all papers, each with the name of its file.
fn figures() -> Vec<(&'static str, Plot<'static>)> {
    [
        cascades::figures(),
        lengths::figures(),
        drafters::figures(),
        blocks::figures(),
    ]
    .concat()
}

async fn measure(
    args: &PapersArgs,
    client: &Client,
    builtin: Option<&Config>,
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
            Paper::B => lengths::measure(client, builtin, extent, report).await?,
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
