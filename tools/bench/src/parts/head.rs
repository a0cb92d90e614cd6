//! What one prediction of an acceptance head costs, as a share of a forward of its draft model.

use std::hint::black_box;
use std::time::{Duration, Instant};

use model::head::{AcceptanceHead, HeadInfo, HeadScratch, HeadWeights, MAX_DEPTH};
use model::{SequenceCache, WeightFormat};
use speculation::verification::AcceptanceLabel;

use super::PartsArgs;
use super::row::PartRow;
use super::subjects::{PartSubject, Subjects};
use crate::timing::in_turn;
use outrider::progress;

/// The share aimed at, with the embedded draft model and with the larger model.
const GOALS: [f64; 2] = [0.2, 0.03];

/// Measures heads of random weights, of every depth, on each draft model.
pub(super) fn rows(args: &PartsArgs, subjects: &mut Subjects) -> anyhow::Result<Vec<PartRow>> {
    let mut rows = Vec::new();
    for (subject, goal) in subjects.drafts()?.into_iter().zip(GOALS) {
        // The first case is the forward that the predictions are compared with.
        let mut cases = vec![None];
        for depth in 0..=MAX_DEPTH {
            cases.push(Some(random(depth, subject.hidden_size())?));
        }
        for &context in &args.contexts {
            progress::show(&format!("head: {}, {context} tokens", subject.name))?;
            let mut cache = subject.cache(context, 1)?;
            let mut scratch = HeadScratch::default();
            let figures = in_turn(args.repeats, &cases, |case| match case {
                None => forward(subject, &mut cache),
                Some(head) => Ok(predict(head, &mut scratch)),
            })?;
            rows.extend(
                figures
                    .iter()
                    .enumerate()
                    .skip(1)
                    .map(|(case, of)| PartRow {
                        on: subject.name.clone(),
                        context,
                        what: format!("head of depth {}", case - 1),
                        baseline: "1 draft token".to_owned(),
                        us: of.us,
                        baseline_us: figures[0].us,
                        ratio: of.ratio,
                        goal: Some(goal),
                    }),
            );
        }
    }
    Ok(rows)
}

fn forward(subject: &mut PartSubject, cache: &mut SequenceCache) -> anyhow::Result<Duration> {
    let tokens = subject.tokens(1);
    subject.verify(cache, &tokens, &[], &[])
}

fn predict(head: &AcceptanceHead, scratch: &mut HeadScratch) -> Duration {
    let hidden: Vec<f32> = numbers(1.0).take(head.info().hidden_size).collect();
    let started = Instant::now();
    black_box(head.accept_probability(black_box(&hidden), scratch));
    started.elapsed()
}

/// A head of untied blocks.
fn random(depth: usize, hidden_size: usize) -> anyhow::Result<AcceptanceHead> {
    let scale = 1.0 / (hidden_size as f32).sqrt();
    let mut numbers = numbers(scale);
    let mut take = |count: usize| numbers.by_ref().take(count).collect::<Vec<f32>>();
    let blocks = (0..depth)
        .map(|_| (take(hidden_size * hidden_size), take(hidden_size)))
        .collect();
    let weights = HeadWeights {
        blocks,
        out_weight: take(2 * hidden_size),
        out_bias: take(2),
    };
    let info = HeadInfo {
        depth,
        tied: false,
        hidden_size,
        label: AcceptanceLabel::Coupled,
        draft_fingerprint: String::new(),
        w_rej: 1.0,
        mix: 0.0,
        seed: 0,
    };
    // As with a draft model in this format.
    Ok(AcceptanceHead::new(info, weights, "random")?.in_format(WeightFormat::Q8_0))
}

/// Numbers of no meaning from -`scale` to `scale`.
fn numbers(scale: f32) -> impl Iterator<Item = f32> {
    (0_u32..).map(move |i| {
        let mixed = i.wrapping_mul(0x9E37_79B9) >> 8;
        scale * (mixed as f32 / (1 << 23) as f32 - 1.0)
    })
}
