//! Rounds through the shipped functions: drafting as told, `ComputedRound`, `verify`.

use super::{Distributions, OutputDistribution, assert_same, emitted, outputs};
use crate::model::{Model, apply, confidence};
use speculation::TokenId;
use speculation::chance::Chance;
use speculation::confidence::Confidence;
use speculation::drafting::{ProposalOptions, draw, propose};
use speculation::noise::Noise;
use speculation::proposal::{BadProposal, Proposal, ProposalForm, ProposalProbs};
use speculation::real::argmax;
use speculation::round::{BlockInput, ComputedRound, RoundInputs, RoundScratch, TargetRows};
use speculation::target::{TargetDistribution, TargetProbs};
use speculation::verification::layers::{Horizon, ResidualLayer};
use speculation::verification::{DraftChain, LastToken, Verdict, Verification, verify};

/// How rounds are made.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) draft: &'a Distributions,
    pub(crate) target: &'a Distributions,
    pub(crate) verification: Verification,
    pub(crate) form: ProposalForm,
    pub(crate) distribution: &'a TargetDistribution,
    pub(crate) ends: &'a [TokenId],
    /// Divides the logits of both models; 0 takes the most likely token.
    pub(crate) temperature: f64,
    /// The most draft tokens of the round after so many output tokens.
    pub(crate) length: fn(u32) -> u32,
    /// Whether drafting stops after these tokens, output or drafted.
    pub(crate) stops: fn(&[TokenId]) -> bool,
}

/// The target's rows along a draft: sampling distribution and unscaled distribution.
struct TreeRows(Vec<(Vec<f64>, Vec<f64>)>);

impl TargetRows<f64> for TreeRows {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f64>, BadProposal> {
        let (probs, unscaled) = &mut self.0[offset];
        Ok(TargetProbs {
            probs,
            unscaled: Some(unscaled),
            confidence: confidence(unscaled),
        })
    }

    fn row(&self, offset: usize) -> &[f64] {
        &self.0[offset].0
    }
}

impl Setup<'_> {
    /// The proposal that the drafter sends at `prefix`, and the distribution it draws from.
    fn propose(&self, prefix: &[TokenId]) -> (Proposal, Vec<f64>) {
        let unscaled = self.draft.after(prefix);
        let mut probs = self.at_temperature(&unscaled);
        let sure = confidence(&unscaled);
        let proposal_options = ProposalOptions {
            form: self.form,
            confidence: true,
            unscaled: true,
        };
        let proposal = propose(&mut probs, Some(&unscaled), sure, proposal_options);
        (proposal, probs)
    }

    /// The sampling distribution of an unscaled one.
    fn at_temperature(&self, unscaled: &[f64]) -> Vec<f64> {
        if self.temperature == 0.0 {
            let best = argmax(unscaled);
            let is_best = |token| f64::from(u8::from(token == best));
            return (0..unscaled.len()).map(is_best).collect();
        }
        if self.temperature == 1.0 {
            return unscaled.to_vec();
        }
        let power = |mass: &f64| mass.powf(1.0 / self.temperature);
        let total: f64 = unscaled.iter().map(power).sum();
        unscaled.iter().map(|mass| power(mass) / total).collect()
    }

    /// The target model's distributions after `prefix`: sampling and unscaled.
    fn target_distributions(&self, prefix: &[TokenId]) -> (Vec<f64>, Vec<f64>) {
        let unscaled = self.target.after(prefix);
        (self.at_temperature(&unscaled), unscaled)
    }

    /// One round after `prefix` with the residual `layers`.
    pub(crate) fn round(
        &self,
        prefix: &[TokenId],
        layers: &[ResidualLayer],
        chance: &mut impl Chance<f64>,
    ) -> Verdict {
        let base_len = prefix.len() as u32;
        let horizon = (self.length)(base_len);
        let noise = Noise::new(0, 0);
        let mut context = prefix.to_vec();
        let (mut drafts, mut proposals) = (Vec::new(), Vec::new());
        let mut is_ended = false;
        for offset in 0..horizon {
            if (self.stops)(&context) {
                break;
            }
            let (proposal, probs) = self.propose(&context);
            let token = draw(
                &probs,
                self.verification,
                &noise,
                (base_len, offset),
                chance,
            );
            context.push(token);
            drafts.push(token);
            proposals.push(proposal);
            if self.ends.contains(&token) {
                is_ended = true;
                break;
            }
        }
        let stopped = !is_ended && (self.stops)(&context);
        let rows = (0..=drafts.len())
            .map(|offset| self.target_distributions(&context[..prefix.len() + offset]))
            .collect();
        let block = BlockInput {
            drafts: drafts.clone().into(),
            proposals,
            bonus: Some(self.propose(&context).0),
            ..Default::default()
        };
        let inputs = RoundInputs {
            target: self.distribution,
            verification: self.verification,
            greedy: self.temperature == 0.0,
            block: &block,
            base_len,
            ends: self.ends,
            vocab_size: self.draft.vocab(),
        };
        let mut scratch = RoundScratch::default();
        let mut distributions = ComputedRound::new(inputs, TreeRows(rows), &mut scratch);
        let chain = DraftChain {
            drafts: &drafts,
            base_len,
            ends: self.ends,
            horizon: Horizon {
                len: horizon,
                stopped,
            },
            layers,
        };
        let verdict = verify(
            self.verification,
            &chain,
            &noise,
            chance,
            &mut distributions,
        )
        .expect("well-formed proposals");
        assert_eq!(
            verdict.emitted[..verdict.accepted()],
            drafts[..verdict.accepted()]
        );
        assert_eq!(
            verdict.emitted.len() - verdict.accepted(),
            usize::from(verdict.last != LastToken::AcceptedEnd)
        );
        verdict
    }

    /// The exact distribution of the first `len` output tokens, or of all if the output ends before, round
    /// after round.
    fn emitted(&self, len: usize) -> OutputDistribution {
        emitted(len, self.ends, |output, layers, branch| {
            self.round(output, layers, branch)
        })
    }

    /// Returns what that distribution should be: the target distribution's own.
    pub(crate) fn expected(&self, len: usize) -> OutputDistribution {
        outputs(len, self.ends, |prefix| self.aimed_at(prefix))
    }

    /// Checks that the rounds emit the target distribution.
    pub(crate) fn assert_exact(&self, len: usize, what: &str) {
        let what = format!("{:?} {:?}, {what}", self.verification, self.form);
        assert_same(&self.emitted(len), &self.expected(len), 1e-12, &what);
    }

    /// The target distribution (vocab) after `prefix`, from what is told of the draft model there.
    fn aimed_at(&self, prefix: &[TokenId]) -> Vec<f64> {
        let (target, target_unscaled) = self.target_distributions(prefix);
        let (reported, draft) = self.propose(prefix);
        let sure = reported.confidence.expect("told");
        let mut unscaled = vec![0.0; target.len()];
        match (&reported.probs, reported.unscaled) {
            (ProposalProbs::Sparse { ids, .. }, Some(masses)) => {
                for (&id, mass) in ids.iter().zip(masses) {
                    unscaled[id as usize] = f64::from(mass);
                }
            }
            (_, Some(masses)) => unscaled = masses.into_iter().map(f64::from).collect(),
            (_, None) => {}
        }
        let draft = Model {
            confidence: Confidence {
                max: f64::from(sure.max),
                entropy: f64::from(sure.entropy),
            },
            ..Model::scaled(&draft, &unscaled)
        };
        let target = Model::scaled(&target, &target_unscaled);
        let greedy = self.temperature == 0.0;
        apply(*self.distribution, &draft, &target, greedy).1
    }
}
