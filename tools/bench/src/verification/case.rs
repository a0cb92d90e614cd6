//! One thing to measure: a target distribution, a verification, and a proposal form.

use std::time::{Duration, Instant};

use speculation::chance::RoundChance;
use speculation::confidence::Confidence;
use speculation::drafting::{draw, propose};
use speculation::methods;
use speculation::methods::{Choice, MethodSpec, Setup, TargetKind, names};
use speculation::noise::{InnerCall, Noise};
use speculation::pipeline::Want;
use speculation::proposal::{BadProposal, ProposalForm};
use speculation::round::{self, BlockInput, RoundInputs, RoundScratch, TargetRows};
use speculation::target::{Beta, RULES, TargetProbs};
use speculation::verification::{VERIFICATIONS, Verification};

use super::inputs::{DRAFTS, POSITIONS, VerificationInputs, softmax};
use crate::timing::{median, microseconds};

/// Tokens of a sparse proposal.
pub(super) const TOP: u32 = methods::SPARSE_TOP;

/// Least vocabulary: a sparse distribution must leave something out.
pub(super) const LEAST_VOCAB: usize = TOP as usize + 1;

/// The seed of all noise.
const SEED: u64 = 1;

/// The two forms of a proposal that are measured.
pub(super) const FORMS: [ProposalForm; 2] = [
    ProposalForm::Dense { half: false },
    ProposalForm::Sparse { top: TOP },
];

/// How many softmaxes a position may cost under `verification`.
pub(super) fn goal(verification: Verification) -> f64 {
    if verification == Verification::TOKEN {
        4.0
    } else {
        6.0
    }
}

/// The verifications that a request can choose.
pub(super) fn choosable() -> impl Iterator<Item = Verification> {
    let all = VERIFICATIONS.iter().copied();
    all.filter(|verification| verification.is_choosable)
}

/// What is measured.
#[derive(Clone, Debug)]
pub(super) struct VerificationCase {
    /// Name of the target distribution.
    pub(super) target: String,
    /// Softmaxes that a position may cost.
    pub(super) goal: f64,
    pub(super) choice: Choice,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerificationTimes {
    /// Positions looked at, in all blocks together.
    pub(super) positions: usize,
    pub(super) softmax_us: f64,
    pub(super) position_us: f64,
    /// Softmaxes that a position costs: the median of the ratios, which is not the ratio of medians.
    pub(super) ratio: f64,
}

impl VerificationCase {
    /// Every target distribution under every verification with every form that goes with it.
    pub(super) fn all() -> Vec<Self> {
        let lossy = [Beta::Fixed(1.0), Beta::Tuned].map(|beta| (TargetKind::Lossy, Some(beta)));
        let rules = RULES.iter().map(|&rule| (TargetKind::Rule(rule), None));
        let targets = [(TargetKind::Exact, None)]
            .into_iter()
            .chain(lossy)
            .chain(rules);
        let mut cases = Vec::new();
        for (target, beta) in targets {
            for verification in choosable() {
                for form in FORMS {
                    let spec = MethodSpec::default()
                        .with("target", target.name())
                        .with("verification", verification.name)
                        .with("proposal", names::of_proposal(form));
                    let spec = match beta {
                        Some(Beta::Tuned) => spec.with("beta", "tuned"),
                        Some(Beta::Fixed(beta)) => spec.with("beta", beta),
                        None => spec,
                    };
                    // What does not go together is not there to be measured.
                    if let Ok(choice) = Choice::resolve(&spec, Setup::at(1.0)) {
                        let target = match beta {
                            Some(Beta::Tuned) => "lossy, tuned".to_owned(),
                            Some(Beta::Fixed(beta)) => format!("lossy, beta {beta}"),
                            None => target.name().to_owned(),
                        };
                        cases.push(Self {
                            target,
                            goal: goal(verification),
                            choice,
                        });
                    }
                }
            }
        }
        cases
    }

    /// Measures `repeats` times over all blocks; every block between softmaxes of as many rows.
    ///
    /// # Errors
    /// If a block cannot be decided.
    pub(super) fn measure(
        &self,
        inputs: &mut VerificationInputs,
        repeats: usize,
    ) -> Result<VerificationTimes, BadProposal> {
        let drafted: Vec<_> = (0..inputs.blocks)
            .map(|block| self.draft(inputs, block))
            .collect();
        let mut scratch = RoundScratch::default();
        let mut positions = 0;
        let (mut softmaxes, mut each, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        // The first time fills the caches and counts not.
        for repeat in 0..=repeats {
            let (mut baseline, mut measured) = (Duration::ZERO, Duration::ZERO);
            positions = 0;
            for (block, drafted) in drafted.iter().enumerate() {
                baseline += time_softmax(inputs, block);
                let (took, made) = self.decide(inputs, block, drafted, &mut scratch)?;
                measured += took;
                positions += made;
            }
            if repeat > 0 {
                let softmax = microseconds(baseline) / (inputs.blocks * POSITIONS) as f64;
                let position = microseconds(measured) / positions as f64;
                softmaxes.push(softmax);
                each.push(position);
                ratios.push(position / softmax);
            }
        }
        Ok(VerificationTimes {
            positions,
            softmax_us: median(softmaxes),
            position_us: median(each),
            ratio: median(ratios),
        })
    }

    /// Drafts a block as a drafter does.
    fn draft(&self, inputs: &VerificationInputs, block: usize) -> BlockInput {
        let options = self.choice.proposal_options();
        let noise = Noise::new(SEED, 0);
        let mut chance = RoundChance::new(noise, base_len(block), InnerCall::default());
        let (mut drafts, mut proposals) = (Vec::new(), Vec::new());
        let rows = inputs.of_block(&inputs.draft, block);
        for (offset, probs) in rows.chunks(inputs.vocab).enumerate() {
            let mut probs = probs.to_vec();
            let confidence = Confidence::of(&probs, true);
            proposals.push(propose(&mut probs, None, confidence, options));
            if offset < DRAFTS {
                let at = (base_len(block), offset as u32);
                let verification = self.choice.verification;
                drafts.push(draw(&probs, verification, &noise, at, &mut chance));
            }
        }
        let bonus = proposals.pop().filter(|_| self.choice.bonus_q());
        BlockInput {
            drafts: drafts.into(),
            proposals,
            bonus,
            horizon: (DRAFTS as u32).into(),
            layers: Vec::new(),
        }
    }

    /// Decides a block as a verifier does; how long that took, and how many positions it looked at.
    fn decide(
        &self,
        inputs: &mut VerificationInputs,
        block: usize,
        drafted: &BlockInput,
        scratch: &mut RoundScratch<f32>,
    ) -> Result<(Duration, usize), BadProposal> {
        let vocab_size = inputs.vocab;
        let mut work = std::mem::take(&mut inputs.work);
        work.copy_from_slice(inputs.of_block(&inputs.target, block));
        let mut made = 0;
        let began = Instant::now();
        let rows = TargetDistributions {
            rows: &mut work,
            vocab: vocab_size,
            want: Want::of_target(self.choice.needs()),
            made: &mut made,
        };
        let round = RoundInputs {
            target: &self.choice.target,
            verification: self.choice.verification,
            greedy: false,
            block: drafted,
            base_len: base_len(block),
            ends: &[],
            vocab_size,
        };
        let verdict = round::decide(round, Noise::new(SEED, 0), rows, scratch);
        let took = began.elapsed();
        inputs.work = work;
        std::hint::black_box(verdict?);
        Ok((took, made))
    }
}

/// Output tokens before a block: every block draws its own noise.
fn base_len(block: usize) -> u32 {
    (block * POSITIONS) as u32
}

/// How long it takes to make distributions of the rows of `block`.
fn time_softmax(inputs: &mut VerificationInputs, block: usize) -> Duration {
    let mut work = std::mem::take(&mut inputs.work);
    work.copy_from_slice(inputs.of_block(&inputs.logits, block));
    let began = Instant::now();
    for row in work.chunks_mut(inputs.vocab) {
        softmax(&mut inputs.pipeline, row);
    }
    let took = began.elapsed();
    inputs.work = work;
    took
}

/// The target's rows, which are distributions already.
struct TargetDistributions<'a> {
    rows: &'a mut [f32],
    vocab: usize,
    want: Want,
    /// Rows asked for.
    made: &'a mut usize,
}

impl TargetRows<f32> for TargetDistributions<'_> {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f32>, BadProposal> {
        *self.made += 1;
        let probs = &mut self.rows[offset * self.vocab..][..self.vocab];
        // At temperature 1, nothing cut, a distribution is its own unscaled distribution.
        let seen = self.want.max || self.want.entropy;
        let confidence = seen.then(|| Confidence::of(probs, self.want.entropy));
        Ok(TargetProbs {
            probs,
            unscaled: None,
            confidence: confidence.unwrap_or_default(),
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.rows[offset * self.vocab..][..self.vocab]
    }
}
