//! From samples to what is learnt from, and to what is held out.

use super::learning::{Examples, LabelledChain, Uniforms, mix};
use model::AcceptanceHead;
use model::head::HeadScratch;
use speculation::TokenId;
use speculation::verification::AcceptanceLabel;

use super::dataset::TrainingSample;
use super::draft::DraftModel;
use outrider::progress;

/// One response of so many is held out.
const HELD_OUT: usize = 10;
/// First stream of the uniforms that choose which; one more for each group.
const HELD_OUT_STREAM: u32 = 1 << 30;
/// First stream of the uniforms that mix contexts; one more for each response.
const STREAM: u32 = 1 << 20;

/// States and labels, learnt from and held out.
pub(crate) struct Split {
    pub(crate) learnt: Examples,
    /// Held-out responses, with the states of drafts that branch off them.
    pub(crate) held_out: Vec<HeldOut>,
}

/// A held-out response.
pub(crate) struct HeldOut {
    states: Vec<f32>,
    labels: Vec<f32>,
    ended: bool,
}

/// How contexts are made.
pub(crate) struct Contexts {
    /// Share of the response's own tokens; with 1 drafts branch off the response.
    pub(crate) mix: f64,
    pub(crate) label: AcceptanceLabel,
    pub(crate) seed: u64,
}

/// Runs the draft model over all samples.
///
/// # Errors
/// If a sequence is longer than its context.
pub(super) fn split(
    draft: &mut DraftModel,
    (prompts, samples): (&[Vec<TokenId>], &[TrainingSample]),
    ends: &[TokenId],
    contexts: &Contexts,
) -> anyhow::Result<Split> {
    let hidden = draft.hidden_size();
    let mut split = Split {
        learnt: Examples {
            hidden_size: hidden,
            ..Examples::default()
        },
        held_out: Vec::new(),
    };
    for (index, (prompt, sample)) in prompts.iter().zip(samples).enumerate() {
        let drafts = sample.drafts(contexts.label);
        let (response, drafted, labels) = (&sample.response, &drafts.tokens, &drafts.labels);
        if is_held_out(index, contexts.seed) {
            split.held_out.push(HeldOut {
                states: draft.branched_states(prompt, response, drafted)?,
                labels: labels.clone(),
                ended: response.last().is_some_and(|last| ends.contains(last)),
            });
        } else if contexts.mix >= 1.0 {
            let states = draft.branched_states(prompt, response, drafted)?;
            split.learnt.states.extend(states);
            split.learnt.labels.extend_from_slice(labels);
        } else {
            let mut uniforms = Uniforms::new(contexts.seed, STREAM + index as u32);
            let uniforms = std::iter::repeat_with(|| uniforms.uniform());
            let mixed = mix(response, drafted, uniforms, contexts.mix);
            let states = draft.states(prompt, &mixed.tokens)?;
            for ((state, &label), counts) in
                states.chunks_exact(hidden).zip(labels).zip(mixed.drafted)
            {
                if counts {
                    split.learnt.states.extend_from_slice(state);
                    split.learnt.labels.push(label);
                }
            }
        }
        progress::show(&format!(
            "states of response {} of {}",
            index + 1,
            samples.len()
        ))?;
    }
    progress::clear()?;
    Ok(split)
}

/// Whether the response at `index` is held out: a random one of each group, as the kinds of prompts may come
/// in turn.
fn is_held_out(index: usize, seed: u64) -> bool {
    let group = HELD_OUT_STREAM + (index / HELD_OUT) as u32;
    let chosen = Uniforms::new(seed, group).uniform() * HELD_OUT as f64;
    index % HELD_OUT == chosen as usize
}

/// What `head` predicts for held-out responses.
pub(crate) fn chains(head: &AcceptanceHead, held_out: &[HeldOut]) -> Vec<LabelledChain> {
    let (hidden, mut scratch) = (head.info().hidden_size, HeadScratch::default());
    let mut predict = |states: &[f32]| -> Vec<f32> {
        let states = states.chunks_exact(hidden);
        states
            .map(|state| head.accept_probability(state, &mut scratch))
            .collect()
    };
    (held_out.iter())
        .map(|response| LabelledChain {
            predicted: predict(&response.states),
            labels: response.labels.clone(),
            ended: response.ended,
        })
        .collect()
}

/// What `head` predicts for what it has learnt from.
pub(crate) fn predictions(head: &AcceptanceHead, examples: &Examples) -> Vec<f32> {
    let mut scratch = HeadScratch::default();
    let states = examples.states.chunks_exact(examples.hidden_size);
    states
        .map(|state| head.accept_probability(state, &mut scratch))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_ten_is_held_out_whatever_stands_in_turn() {
        let held_out: Vec<usize> = (0..2000).filter(|&index| is_held_out(index, 0)).collect();
        assert_eq!(held_out.len(), 200);
        assert!(
            held_out
                .iter()
                .enumerate()
                .all(|(group, index)| index / HELD_OUT == group)
        );
        for kind in 0..5 {
            let of_kind = held_out.iter().filter(|&index| index % 5 == kind).count();
            assert!((20..=60).contains(&of_kind), "{kind}: {of_kind}");
        }
    }
}
