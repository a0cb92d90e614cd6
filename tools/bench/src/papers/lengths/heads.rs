//! Acceptance heads of several depths and weights, trained as `train-head` does and replayed at several thresholds.

use outrider::config::Config;
use outrider::progress;
use speculation::verification::AcceptanceLabel;

use super::grid::{self, GridHead, Stop, Trained};
use super::{DRAFT_COST, TOP_K};
use crate::papers::claims::Claim;
use crate::papers::{Extent, texts};
use crate::report::{BenchReport, number, text};
use crate::request::CutArgs;
use crate::train_head::{
    Contexts, FitOptions, Material, ResponseSettings, Split, StopAt, StopCosts, chains, fit,
    mean_kl, predictions, replay,
};

/// The table of thresholds.
pub(super) const THRESHOLDS: &str = "B-thresholds";

/// Thresholds h of the paper's Table 3, and one lower.
const STOPS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];
/// Longest block, as there.
const CAP: usize = 20;
/// Share of the target's own tokens in contexts, as there.
const MIX: f64 = 0.15;
/// Passes over the responses, as there.
const EPOCHS: usize = 3;
/// Trainings of each head, with other first weights and another order.
const SEEDS: u64 = 3;
/// Tokens of a response.
const MAX_TOKENS: u32 = 64;

/// Trains the grid, and returns what became of the claims.
pub(super) async fn measure(
    config: &Config,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    let mut prompts = Vec::new();
    for kind in ["story", "maths", "python"] {
        let mut of_kind = texts::held_out(kind)?;
        of_kind.truncate(extent.prompts(of_kind.len()));
        prompts.extend(of_kind);
    }
    let cache = tempfile::tempdir()?;
    let settings = ResponseSettings {
        draft: None,
        target: None,
        verifier: None,
        temperature: 1.0,
        cuts: CutArgs {
            top_k: TOP_K,
            ..CutArgs::default()
        },
        max_input: None,
        max_tokens: MAX_TOKENS,
        seed: extent.seed,
        cache: cache.path(),
    };
    let mut material = Material::sample(&settings, config.clone(), &prompts).await?;
    let contexts = Contexts {
        mix: MIX,
        label: AcceptanceLabel::Rejection,
        seed: extent.seed,
    };
    let (positions, heads) = tokio::task::block_in_place(|| {
        let split = material.split(&contexts)?;
        let heads = train(&split, material.draft_fingerprint(), extent)?;
        anyhow::Ok((split.learnt.labels.len(), heads))
    })?;
    material.stop().await?;
    report.note(format!(
        "B-heads, B-thresholds: a short training on {positions} positions of {} responses of at most {MAX_TOKENS} tokens, one of ten \
         held out; {EPOCHS} epochs, mix {MIX}, rejection, T=1, top-k {TOP_K}; rounds are replayed on what was held out, by \
         products of labels, at a draft forward of {DRAFT_COST} target forwards; median of {SEEDS} trainings, with least and most \
         in brackets.",
        prompts.len()
    ));
    for head in &heads {
        rows(head, report)?;
    }
    Ok(grid::claims(&heads))
}

fn train(split: &Split, draft_fingerprint: &str, extent: Extent) -> anyhow::Result<Vec<GridHead>> {
    let (depths, weights): (&[usize], &[f64]) = if extent.quick {
        (&[1, 3], &[1.0, 6.0])
    } else {
        (&[1, 2, 3], &[1.0, 3.0, 6.0])
    };
    let mut heads = Vec::new();
    for &w_rej in weights {
        for &depth in depths {
            progress::show(&format!("learning, D={depth}, refusals weighted {w_rej}"))?;
            let options = |seed| FitOptions {
                depth,
                tied: false,
                label: AcceptanceLabel::Rejection,
                draft_fingerprint: draft_fingerprint.to_owned(),
                w_rej,
                mix: MIX,
                epochs: EPOCHS,
                learning_rate: 1e-3,
                batch: 64,
                seed,
            };
            let seeds = extent.seed..extent.seed + SEEDS;
            let trained = seeds.map(|seed| train_one(split, &options(seed)));
            heads.push(GridHead {
                depth,
                w_rej,
                trained: trained.collect::<Result<_, _>>()?,
            });
        }
    }
    Ok(heads)
}

fn train_one(split: &Split, options: &FitOptions) -> anyhow::Result<Trained> {
    let head = fit(&split.learnt, options, |_, _| {})?;
    let chains = chains(&head, &split.held_out);
    let (labels, predicted): (Vec<f32>, Vec<f32>) = chains
        .iter()
        .flat_map(|chain| chain.labels.iter().zip(&chain.predicted))
        .unzip();
    let costs = StopCosts {
        draft: DRAFT_COST,
        target: 1.0,
    };
    let stop = |threshold| {
        let at = StopAt::Refusal {
            threshold,
            cap: CAP,
        };
        Stop::of(threshold, replay(&chains, at, costs, CAP))
    };
    Ok(Trained {
        learnt_kl: mean_kl(&split.learnt.labels, &predictions(&head, &split.learnt)),
        held_out_kl: mean_kl(&labels, &predicted),
        stops: STOPS.map(stop).to_vec(),
    })
}

fn rows(head: &GridHead, report: &mut BenchReport) -> anyhow::Result<()> {
    let names = || {
        [
            number("w_rej", head.w_rej, 0).called("refusals weighted"),
            text("depth", format!("D={}", head.depth)).called("blocks"),
        ]
    };
    let best = head.best();
    let kl = |key, [median, least, most]: [f64; 3]| {
        number(key, median, 4).said(format!("{median:.3} ({least:.3} to {most:.3})"))
    };
    let mut row = Vec::from(names());
    row.extend([
        kl("learnt_kl", head.spread(|it| it.learnt_kl)).called("KL learnt from, nats"),
        kl("held_out_kl", head.spread(|it| it.held_out_kl)).called("KL held out, nats"),
        number("threshold", best.threshold, 1).called("best h"),
        number("discard_rate", best.discard, 3).called("discarded/token"),
        number("verification_rate", best.verification, 3).called("calls/token"),
        number("modelled", best.speedup, 3).called("speedup by forwards"),
    ]);
    report.row("B-heads", row)?;
    for stop in head.stops() {
        let said = format!("{:.3}, {:.3}", stop.discard, stop.verification);
        let mut row = Vec::from(names());
        row.extend([
            text("threshold", stop.threshold)
                .said(format!("discarded, calls at h={}", stop.threshold))
                .across(),
            number("discard_rate", stop.discard, 3).said(said).cell(),
            number("verification_rate", stop.verification, 3).hidden(),
            number("modelled", stop.speedup, 3).hidden(),
        ]);
        report.row(THRESHOLDS, row)?;
    }
    Ok(())
}
