//! `outrider-bench train-head`: an acceptance head for learnt stopping.

mod args;
mod dataset;
mod draft;
mod examples;
mod learning;
mod material;
mod report;
mod sampling;
mod target;
mod verifier;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};

use crate::ranges;
use crate::report::BenchReport;
pub(crate) use args::TrainHeadArgs;
pub(crate) use examples::{Contexts, Split, chains, predictions};
pub(crate) use learning::{FitOptions, Replayed, StopAt, StopCosts, fit, mean_kl, replay};
pub(crate) use material::{Material, ResponseSettings};
use outrider::config::Config;
use outrider::global::INTERRUPTED;
use outrider::progress;
use outrider::prompts::Example;
use report::HeadQuality;
use target::ResponseRequest;

/// Fewest prompts: with these, one response is held out.
const LEAST_PROMPTS: usize = 10;
/// Forwards that are timed.
const TIMED: u32 = 24;

/// Trains a head.
pub(crate) async fn run(
    args: TrainHeadArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<ExitCode> {
    args.options("").check()?;
    let sampling = sampling::settings(args.temperature, args.cuts, &[]);
    sampling.validate(u32::MAX)?;
    ranges::at_least_one([("max-tokens", args.max_tokens as usize)])?;
    for (name, ms) in [
        ("--draft-ms", args.draft_ms),
        ("--target-ms", args.target_ms),
    ] {
        ensure!(
            ms.is_none_or(|ms| ms > 0.0 && ms.is_finite()),
            "{name}: expected a number above 0"
        );
    }
    let folder = args
        .out
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), "--out: {} is no folder", folder.display());
    ensure!(
        args.force || !args.out.exists(),
        "--out: {} is there already, --force replaces it",
        args.out.display()
    );
    let prompts = args.input.load(Some(&args.prompts), usize::MAX)?;
    let found = prompts.len();
    ensure!(
        found >= LEAST_PROMPTS,
        "--prompts: {found} prompts, expected at least {LEAST_PROMPTS}"
    );
    tokio::select! {
        outcome = train(&args, config, &prompts, report) => outcome.map(|()| ExitCode::SUCCESS),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            progress::clear()?;
            anstream::eprintln!("interrupted; run again to go on from here");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

async fn train(
    args: &TrainHeadArgs,
    config: Config,
    prompts: &[Example],
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let mut material = Material::sample(&args.responses(), config, prompts).await?;
    let costs = costs(args, &mut material).await?;
    tokio::task::block_in_place(|| learn(args, &mut material, costs, report))?;
    material.stop().await
}

/// Learns from what was sampled, writes the head and tells how good it is.
fn learn(
    args: &TrainHeadArgs,
    material: &mut Material,
    costs: StopCosts,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let contexts = Contexts {
        mix: args.mix,
        label: args.label,
        seed: args.seed,
    };
    let split = material.split(&contexts)?;
    let options = args.options(material.draft_fingerprint());
    let head = fit(&split.learnt, &options, |done, of| {
        if done % 16 == 0 || done == of {
            // A line on a terminal; that it cannot be written changes nothing.
            let _ = progress::show(&format!("learning, step {done} of {of}"));
        }
    })?;
    head.save(&args.out).context("--out")?;
    let found = HeadQuality {
        learnt: (
            &split.learnt.labels,
            &examples::predictions(&head, &split.learnt),
        ),
        held_out: &examples::chains(&head, &split.held_out),
        costs,
    };
    found.add_to(report)?;
    report.note(format!("wrote {}", args.out.display()));
    Ok(())
}

/// What forwards cost: as given, or as measured.
async fn costs(args: &TrainHeadArgs, material: &mut Material) -> anyhow::Result<StopCosts> {
    let Material {
        draft,
        target,
        requested,
        ..
    } = material;
    let target_ms = if let Some(ms) = args.target_ms {
        ms
    } else {
        let requested = ResponseRequest {
            max_tokens: TIMED.min(requested.max_tokens),
            ..requested.clone()
        };
        let mut times = target.decode(&requested).await?.forward_us;
        // The first forward takes the prompt too.
        if times.len() > 1 {
            times.remove(0);
        }
        times.sort_unstable();
        f64::from(times[times.len() / 2]).max(1.0) / 1e3
    };
    let draft_ms = if let Some(ms) = args.draft_ms {
        ms
    } else {
        let tokens = &requested.prompt.repeat(TIMED as usize)[..TIMED as usize];
        tokio::task::block_in_place(|| draft.forward_ms(tokens))?
    };
    Ok(StopCosts {
        draft: draft_ms,
        target: target_ms,
    })
}
