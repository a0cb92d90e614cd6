//! How far the synthetic target's deeper layers must be scaled down for its draft to be accepted as often
//! as is wanted.

use model::{Model, SequenceCache};
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::history::History;
use speculation::noise::Noise;
use speculation::pipeline::Pipeline;
use speculation::ports::{LanguageModel, Rows, Segment};
use speculation::sampling::SamplingParams;

use super::{Synthetic, ids};
use outrider::progress;

/// Sequences that acceptance is measured on, tokens of their prompts, and tokens that each goes on for: as many
/// as requests are measured with by default, for acceptance changes along a sequence.
const SEQUENCES: usize = 16;
const PROMPT: usize = 16;
const TOKENS: usize = 96;

/// Halvings of the interval of scales.
const STEPS: usize = 7;

/// As near as the acceptance must come.
const NEAR: f64 = 0.005;

/// A scale, and the acceptance measured with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calibrated {
    pub(crate) scale: f32,
    pub(crate) acceptance: f64,
}

/// Bisects the logarithm of the scale until coupled drafts at `temperature` are accepted with probability
/// `wanted`. The more the deeper layers add, the less the first ones foretell.
///
/// # Errors
/// If the models cannot be made or run.
pub(crate) fn calibrate(
    synthetic: &Synthetic,
    temperature: f32,
    wanted: f64,
) -> anyhow::Result<Calibrated> {
    let (mut low, mut high) = (1e-3_f32, 1.0_f32);
    let mut best: Option<Calibrated> = None;
    for step in 1..=STEPS {
        let scale = (low * high).sqrt();
        progress::show(&format!(
            "synthetic pair, T={temperature}: scale {scale:.4}, step {step} of {STEPS}"
        ))?;
        let [target, draft] = synthetic.models(scale)?;
        let acceptance = acceptance(target, draft, temperature)?;
        let found = Calibrated { scale, acceptance };
        let distance = |of: &Calibrated| (of.acceptance - wanted).abs();
        if best
            .as_ref()
            .is_none_or(|best| distance(&found) < distance(best))
        {
            best = Some(found);
        }
        if distance(&found) <= NEAR {
            break;
        }
        if acceptance > wanted {
            low = scale;
        } else {
            high = scale;
        }
    }
    Ok(best.unwrap_or(Calibrated {
        scale: 1.0,
        acceptance: 0.0,
    }))
}

/// How often the draft chooses what the target chose, with the same noise and after the same tokens: along
/// the target's own outputs, as after a block's accepted tokens.
fn acceptance(mut target: Model, mut draft: Model, temperature: f32) -> anyhow::Result<f64> {
    let vocab = target.shape().vocab_size;
    let params = SamplingParams {
        temperature,
        ..SamplingParams::default()
    };
    let mut pipeline = Pipeline::new(params);
    let mut choose = |row: &mut [f32], sequence: usize, position: usize| {
        let position = position as u32;
        pipeline.probs(row, &History::default(), position)?;
        anyhow::Ok(choice(row, &Noise::new(sequence as u64, 0), position))
    };
    let mut sequences: Vec<Vec<TokenId>> = (0..SEQUENCES)
        .map(|seed| ids(vocab, PROMPT, seed).map(|id| id as TokenId).collect())
        .collect();
    let mut caches = [&target, &draft]
        .map(|model| -> Vec<SequenceCache> { (0..SEQUENCES).map(|_| model.new_cache()).collect() });
    let mut rows = Rows::default();
    let mut equal = 0;
    for position in 0..TOKENS {
        let mut chosen = Vec::new();
        for (model, caches) in [&mut target, &mut draft].into_iter().zip(&mut caches) {
            let mut batch: Vec<_> = caches
                .iter_mut()
                .zip(&sequences)
                .map(|(cache, tokens)| {
                    let tokens = if position == 0 {
                        &tokens[..]
                    } else {
                        &tokens[tokens.len() - 1..]
                    };
                    Segment {
                        cache,
                        tokens,
                        parents: &[],
                        scored_from: tokens.len() - 1,
                    }
                })
                .collect();
            model.forward(&mut batch, &mut rows)?;
            let tokens =
                (0..SEQUENCES).map(|sequence| choose(rows.row_mut(sequence), sequence, position));
            chosen.push(tokens.collect::<anyhow::Result<Vec<_>>>()?);
        }
        equal += chosen[0]
            .iter()
            .zip(&chosen[1])
            .filter(|(a, b)| a == b)
            .count();
        for (sequence, &token) in sequences.iter_mut().zip(&chosen[0]) {
            sequence.push(token);
        }
    }
    Ok(equal as f64 / (SEQUENCES * TOKENS) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::random;

    fn synthetic() -> Synthetic {
        Synthetic {
            target: random(64, 3, 512).expect("a config"),
            draft_layers: 1,
        }
    }

    #[test]
    fn the_more_deeper_layers_add_the_less_is_accepted() {
        for temperature in [0.0, 1.0] {
            let at = |scale| {
                let [target, draft] = synthetic().models(scale).expect("models");
                acceptance(target, draft, temperature).expect("measured")
            };
            assert_eq!(at(0.0), 1.0);
            let (little, much) = (at(0.05), at(1.0));
            assert!(little > much + 0.2, "T={temperature}: {little}, {much}");
        }
    }

    #[test]
    fn the_acceptance_wanted_is_found() {
        for temperature in [0.0, 1.0] {
            let found = calibrate(&synthetic(), temperature, 0.8).expect("calibrated");
            let Calibrated { scale, acceptance } = found;
            assert!(
                (acceptance - 0.8).abs() < 0.03,
                "T={temperature}: {found:?}"
            );
            assert!(scale > 1e-3 && scale < 1.0, "{found:?}");
        }
    }
}
