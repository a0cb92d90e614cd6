//! Responses from the target, drafts from the draft model, labels from both distributions.

use std::collections::VecDeque;

use anyhow::Context;
use outrider_tests::acceptance::label_probability;
use speculation::TokenId;
use speculation::chance::{Chance, RoundChance};
use speculation::methods::SPARSE_TOP;
use speculation::noise::{InnerCall, Noise, Purpose};
use speculation::proposal::{ProposalForm, ProposalProbs};
use speculation::sampling::SamplingParams;
use speculation::verification::AcceptanceLabel;

use super::dataset::{Dataset, Drafts, TrainingSample};
use super::draft::DraftModel;
use super::target::{ResponseRequest, TargetResponse, TrainingTarget};
use crate::request::CutArgs;
use outrider::progress;

/// Responses asked for at once, so that the verifier can batch them.
const AT_ONCE: usize = 8;
/// The form in which a draft distribution is sent for verification by rejection, where a request names none.
const TOLD: ProposalForm = ProposalForm::Sparse { top: SPARSE_TOP };

/// Samples what `dataset` lacks of one response a prompt; the response to the prompt at index i has the
/// seed `asked.seed + i`.
///
/// # Errors
/// If the verifier is lost or refuses, or the file cannot be written.
pub(super) async fn complete(
    dataset: &mut Dataset,
    draft: &mut DraftModel,
    target: &TrainingTarget,
    (prompts, requested): (&[Vec<TokenId>], &ResponseRequest),
) -> anyhow::Result<()> {
    let mut coming = VecDeque::new();
    let mut next = dataset.samples.len();
    while dataset.samples.len() < prompts.len() {
        while next < prompts.len() && coming.len() < AT_ONCE {
            let requested = ResponseRequest {
                prompt: prompts[next].clone(),
                seed: requested.seed.wrapping_add(next as u64),
                ..requested.clone()
            };
            let target = target.clone();
            coming.push_back(tokio::spawn(async move {
                let response = target.respond(&requested).await;
                response.map(|response| (requested, response))
            }));
            next += 1;
        }
        let Some(first) = coming.pop_front() else {
            break;
        };
        let (index, responded) = (dataset.samples.len(), first.await?);
        let sample = responded.and_then(|(requested, response)| {
            tokio::task::block_in_place(|| label(draft, &requested, response))
        });
        dataset
            .push(sample.with_context(|| {
                format!("prompt {}; run again to go on from here", index + 1)
            })?)?;
        let positions: usize = (dataset.samples.iter())
            .map(|sample| sample.response.len())
            .sum();
        let (done, of) = (index + 1, prompts.len());
        progress::show(&format!("response {done} of {of}, {positions} positions"))?;
    }
    progress::clear()?;
    Ok(())
}

/// Draws what would have been drafted along `response`, and labels it.
fn label(
    draft: &mut DraftModel,
    requested: &ResponseRequest,
    response: TargetResponse,
) -> anyhow::Result<TrainingSample> {
    let distributions =
        draft.distributions(&requested.prompt, &response.tokens, &requested.sampling)?;
    let noise = Noise::new(requested.seed, 0);
    let mut chance = RoundChance::new(noise, 0, InnerCall::default());
    Ok(drafts(distributions, response, &mut chance))
}

/// The sample of draft distributions (positions), each (vocab), along `response`.
///
/// For coupling Y comes from the distribution q, for rejection from q', the distribution as it is sent where a
/// request names no form: verification tests against that one. The drafts are independent of the response:
/// coupled ones would be what the label predicts.
fn drafts(
    distributions: Vec<Vec<f32>>,
    response: TargetResponse,
    chance: &mut impl Chance<f32>,
) -> TrainingSample {
    let (mut coupled, mut rejection) = (Drafts::default(), Drafts::default());
    for (position, (mut q, p)) in distributions
        .into_iter()
        .zip(&response.distributions)
        .enumerate()
    {
        let mut draw = |drafts: &mut Drafts, label: AcceptanceLabel, q: &[f32]| {
            let token = chance.token(Purpose::Draft, position as u32, q);
            drafts.tokens.push(token);
            let accepted = label_probability(label, q, p, token);
            drafts.labels.push(accepted.clamp(0.0, 1.0));
        };
        draw(&mut coupled, AcceptanceLabel::Coupled, &q);
        ProposalProbs::of(&mut q, TOLD);
        draw(&mut rejection, AcceptanceLabel::Rejection, &q);
    }
    TrainingSample {
        response: response.tokens,
        coupled,
        rejection,
    }
}

/// The settings all responses share.
pub(super) fn settings(temperature: f32, cuts: CutArgs, end_tokens: &[TokenId]) -> SamplingParams {
    SamplingParams {
        temperature,
        top_k: cuts.top_k,
        top_p: cuts.top_p,
        min_p: cuts.min_p,
        end_tokens: end_tokens.to_vec(),
        ..SamplingParams::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(positions: usize, p: &[f32]) -> TargetResponse {
        TargetResponse {
            tokens: vec![2; positions],
            distributions: vec![p.to_vec(); positions],
        }
    }

    #[test]
    fn drafts_follow_the_draft_distribution_and_labels_both() {
        let (q, p) = ([0.75_f32, 0.25, 0.0], [0.25_f32, 0.25, 0.5]);
        let mut chance = RoundChance::new(Noise::new(3, 0), 0, InnerCall::default());
        let sample = drafts(vec![q.to_vec(); 4000], response(4000, &p), &mut chance);
        let first = |drafts: &Drafts| drafts.tokens.iter().filter(|&&token| token == 0).count();
        // Five standard deviations are 137.
        for drafts in [&sample.coupled, &sample.rejection] {
            assert!(first(drafts).abs_diff(3000) < 137, "{}", first(drafts));
        }
        for position in 0..4000 {
            // 1 / Σ max(q_i, p_i q_x / p_x).
            let coupled = match sample.coupled.tokens[position] {
                0 => 1.0 / (0.75 + 0.75 + 1.5),
                1 => 1.0 / (0.75 + 0.25 + 0.5),
                _ => panic!("a token the draft distribution has not"),
            };
            assert!((sample.coupled.labels[position] - coupled).abs() < 1e-6);
            // min(1, p / q'); q' has weights 65,535 and 21,845, a third of it.
            let rejection = [1.0 / 3.0, 1.0][sample.rejection.tokens[position] as usize];
            assert!((sample.rejection.labels[position] - rejection).abs() < 1e-6);
        }
    }

    /// Gives the token of a list for each position, and remembers the distributions it was to draw from.
    #[derive(Default)]
    struct Listed {
        distributions: Vec<Vec<f32>>,
    }

    impl Chance<f32> for Listed {
        fn accepts(&mut self, _: u32, _: f32) -> bool {
            panic!("nothing is accepted or refused here")
        }

        fn token(&mut self, purpose: Purpose, offset: u32, probs: &[f32]) -> TokenId {
            assert_eq!(purpose, Purpose::Draft);
            self.distributions.push(probs.to_vec());
            offset
        }
    }

    /// 40 tokens, of which the 32 most likely are told: the mean label over all that can be drafted is
    /// Σ min(q', p), what verification accepts.
    #[test]
    fn rejection_is_learnt_from_the_distribution_that_is_told_and_coupling_from_the_whole() {
        let total: f64 = (1..=40).map(f64::from).sum();
        let q: Vec<f32> = (1..=40).map(|v| (f64::from(v) / total) as f32).collect();
        let p: Vec<f32> = q.iter().rev().copied().collect();
        let mut chance = Listed::default();
        let sample = drafts(vec![q.clone(); 40], response(40, &p), &mut chance);
        // By hand: 65,535 for the 40 most likely of all, in proportion for the others, from 9 on.
        let weight = |v: usize| {
            if v < 8 {
                0.0
            } else {
                ((v + 1) as f64 / 40.0 * 65_535.0).round()
            }
        };
        let weights: f64 = (0..40).map(weight).sum();
        let reported: Vec<f64> = (0..40).map(|v| weight(v) / weights).collect();
        let (mut mean, mut accepted) = (0.0, 0.0);
        for v in 0..40 {
            assert_eq!(
                chance.distributions[2 * v],
                q,
                "the distribution drawn from for coupling"
            );
            for (found, expected) in chance.distributions[2 * v + 1].iter().zip(&reported) {
                assert!((f64::from(*found) - expected).abs() < 1e-7, "for rejection");
            }
            assert_eq!(
                (sample.coupled.tokens[v], sample.rejection.tokens[v]),
                (v as u32, v as u32)
            );
            let coupled = label_probability(AcceptanceLabel::Coupled, &q, &p, v as u32);
            assert_eq!(sample.coupled.labels[v], coupled);
            mean += reported[v] * f64::from(sample.rejection.labels[v]);
            accepted += reported[v].min(f64::from(p[v]));
        }
        assert!((mean - accepted).abs() < 1e-7, "{mean}, {accepted}");
    }
}
