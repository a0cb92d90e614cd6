//! What is asked for: models, sampling, method and limits of one request.

use std::time::Duration;

use outrider_tests::session;
use outrider_tests::toy::ToyModel;
use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::coupled::choice;
use speculation::drafting::policies::CONFIDENCE;
use speculation::drafting::{StopRule, TreeShape};
use speculation::goodput::Estimator;
use speculation::methods::{self, Method};
use speculation::noise::Noise;
use speculation::proposal::ProposalForm;
use speculation::sampling::SamplingParams;
use speculation::session::{Peer, Plan, SessionConfig};
use speculation::target::{TargetDistribution, rules};
use speculation::verification::Verification;

use crate::dice::{Chooses, Dice};
use crate::prices::Claims;
use crate::sequence::Sequence;
use crate::simulation::FORWARD;

/// More than a sparse draft distribution keeps, so that rejection meets a distribution that was really cut.
pub(crate) const VOCAB_SIZE: u32 = 48;
pub(crate) const PROMPT: [TokenId; 3] = [7, 11, 13];
pub(crate) const END_TOKEN: TokenId = 2;
/// Most draft tokens a peer drafts at once, whatever it is asked for.
pub(crate) const MOST_DRAFTED: u32 = 8;
/// Between the maxima of the toy's distributions, so that a rule defers often and not always.
const DEFERS_BELOW: f64 = 0.2;
pub(crate) const ROUND_TIMEOUT: Duration = Duration::from_millis(200);

/// How far the draft model's distributions are from the target's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DraftModel {
    Near,
    Unrelated,
}

/// One request.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what is asked for, one by one"
)]
pub(crate) struct Case {
    /// Seed of the noise, and of both models.
    pub(crate) seed: u64,
    pub(crate) method: &'static Method,
    /// Which model does what; the method's own unless a test sets another.
    pub(crate) plan: Plan,
    /// The deferral rule: the target's distribution where the draft distribution's maximum is below this.
    pub(crate) defers_below: Option<f64>,
    pub(crate) temperature: f32,
    pub(crate) draft_model: DraftModel,
    pub(crate) draft_len: u32,
    /// Whether the length of blocks, up to `draft_len`, follows what is measured.
    pub(crate) goodput: bool,
    /// Forwards that the target takes for a token when it decodes alone.
    pub(crate) alone_forwards: u32,
    /// The load that peers report with each answer, if draft lengths follow measurements.
    pub(crate) claims: Claims,
    /// The shape of blocks; other than a chain with coupled verification of the exact target only.
    pub(crate) tree: TreeShape,
    /// Whether the target decodes all along, and takes drafts as they come.
    pub(crate) streams: bool,
    /// Whether a drafter drafts ahead of it.
    pub(crate) drafts_ahead: bool,
    /// How far it may then be ahead of what the client took.
    pub(crate) ahead: u32,
    /// Whether all that is proposed to it is the draft model's.
    pub(crate) honest: bool,
    /// Scores of the prompt that are wanted first.
    pub(crate) prompt_scores: u32,
    pub(crate) max_tokens: u32,
    pub(crate) retries: u32,
    pub(crate) deadline: Option<Duration>,
}

impl Case {
    /// A case of the method called `method`.
    pub(crate) fn new(seed: u64, method: &str) -> Self {
        let method = methods::find(method).expect("a method of the registry");
        Self {
            seed,
            method,
            plan: method.preset(1.0).plan,
            defers_below: None,
            temperature: 1.0,
            draft_model: DraftModel::Near,
            draft_len: 4,
            goodput: false,
            alone_forwards: 1,
            claims: Claims::Anything,
            tree: TreeShape::Chain,
            streams: false,
            drafts_ahead: false,
            ahead: 16,
            honest: false,
            prompt_scores: 0,
            max_tokens: 32,
            retries: 2,
            deadline: Some(Duration::from_secs(20)),
        }
    }

    /// A case of a plan with a deferral rule, coupled so that a seed gives the same tokens again.
    pub(crate) fn cascade(seed: u64, plan: Plan) -> Self {
        let mut dice = Dice::new(seed, Chooses::Case);
        Self {
            plan,
            defers_below: Some(DEFERS_BELOW),
            temperature: dice.pick(&[0.7, 1.0]),
            draft_model: dice.pick(&[DraftModel::Near, DraftModel::Unrelated]),
            draft_len: dice.pick(&[1, 4, 8]),
            max_tokens: 1 + dice.below(48),
            retries: dice.below(4),
            deadline: Some(dice.time(100..30_000)),
            ..Self::new(seed, "coupled")
        }
    }

    /// Both temperatures, short and long blocks, good and bad draft models, with several seeds.
    pub(crate) fn grid(method: &str) -> Vec<Self> {
        let mut cases = Vec::new();
        for seed in 0..4 {
            for temperature in [0.0, 1.0] {
                for draft_len in [1, 4, 8] {
                    for draft_model in [DraftModel::Near, DraftModel::Unrelated] {
                        cases.push(Self {
                            temperature,
                            draft_model,
                            draft_len,
                            ..Self::new(cases.len() as u64 * 4 + seed, method)
                        });
                    }
                }
            }
        }
        cases
    }

    /// The case that `seed` stands for.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed, Chooses::Case);
        let method = dice.pick(&[
            "coupled",
            "coupled",
            "coupled",
            "rejection",
            "block",
            "block-greedy",
            "target-only",
        ]);
        let deadline = match dice.below(3) {
            0 => dice.time(1..1_000),
            _ => dice.time(1_000..30_000),
        };
        let case = Self {
            temperature: dice.pick(&[0.0, 0.7, 1.0]),
            draft_model: dice.pick(&[DraftModel::Near, DraftModel::Unrelated]),
            draft_len: dice.pick(&[1, 4, 8]),
            max_tokens: 1 + dice.below(48),
            retries: dice.below(4),
            deadline: Some(deadline),
            ..Self::new(seed, method)
        };
        let shapes = match method {
            "coupled" => &[
                TreeShape::Chain,
                TreeShape::Comb(4),
                TreeShape::Alternates(2),
            ][..],
            _ => &[TreeShape::Chain],
        };
        let case = Self {
            goodput: dice.below(3) == 0,
            tree: dice.pick(shapes),
            prompt_scores: dice.pick(&[0, 0, 1, 5]),
            ..case
        };
        if method == "coupled" && dice.happens(550) {
            return case.streamed();
        }
        case
    }

    /// This case, with a target that decodes all along.
    pub(crate) fn streamed(self) -> Self {
        let mut dice = Dice::new(self.seed, Chooses::Proposals);
        Self {
            method: methods::find("coupled").expect("a method of the registry"),
            plan: Plan::Speculative,
            goodput: false,
            tree: TreeShape::Chain,
            streams: true,
            ahead: dice.pick(&[2, 6, 16, 64]),
            honest: dice.happens(250),
            // Drafts come in time for a slow target only.
            alone_forwards: dice.pick(&[1, 4, 8, 8]),
            ..self
        }
    }

    pub(crate) fn session_config(&self) -> SessionConfig {
        SessionConfig {
            goodput: self.goodput.then(|| {
                // The target alone was measured, so that drafting is tried first.
                let mut known = Estimator::default();
                known.observe_alone(24, Some(FORWARD));
                known
            }),
            tree: self.tree,
            streams: self.streams,
            bonus_q: self.verifier_needs_draft_probs() && self.plan == Plan::Speculative,
            depends_on_draft: self.defers_below.is_some(),
            carries_layers: self.verification() == Verification::BLOCK_GREEDY,
            end_tokens: vec![END_TOKEN],
            round_timeout: ROUND_TIMEOUT,
            draft_timeout: ROUND_TIMEOUT,
            last_resort_retries: self.retries,
            retries: self.retries,
            retry_pause: Duration::from_millis(50),
            fallback_tokens: 8,
            prompt_scores: self.prompt_scores,
            deadline: self.deadline,
            ..session::limits(self.plan, self.draft_len, self.max_tokens, VOCAB_SIZE)
        }
    }

    /// Whether it is the verifier that follows the deferral rule, and needs the draft distribution for it.
    pub(crate) fn verifier_needs_draft_probs(&self) -> bool {
        let blocks = matches!(self.plan, Plan::Speculative | Plan::OracleCascade);
        blocks && self.defers_below.is_some()
    }

    /// Whether the drafter stops where the rule says defer.
    pub(crate) fn drafter_stops(&self) -> bool {
        matches!(self.plan, Plan::TokenCascade { .. } | Plan::Bild { .. })
    }

    /// What the deferral rule says of a draft distribution.
    pub(crate) fn defers(&self, draft_probs: &[f32]) -> bool {
        let confidence = Confidence::of(draft_probs, false);
        let rule = self
            .defers_below
            .map(|least| StopRule::new(&CONFIDENCE, least));
        rule.is_some_and(|rule| rule.stops(confidence))
    }

    /// How the verifier decides a block.
    pub(crate) fn verification(&self) -> Verification {
        match self.plan {
            Plan::Bild {
                code_variant: true, ..
            } => Verification::bild_code(3.0),
            Plan::Bild { .. } => Verification::bild(3.0),
            _ => self.method.verification,
        }
    }

    /// What the verifier aims at.
    pub(crate) fn target(&self) -> TargetDistribution {
        match self.defers_below {
            Some(least) if self.verifier_needs_draft_probs() => TargetDistribution::Deferral {
                rule: rules::CHOW,
                alpha: 1.0 - least,
            },
            _ => TargetDistribution::Exact,
        }
    }

    /// Which parts of a draft distribution are sent to the verifier.
    pub(crate) fn form(&self) -> ProposalForm {
        if self.verifier_needs_draft_probs() {
            return ProposalForm::Dense { half: false };
        }
        self.method.preset(self.temperature).proposal
    }

    /// A penalty makes every distribution depend on what a peer takes for the output so far.
    pub(crate) fn sampling(&self) -> SamplingParams {
        SamplingParams {
            temperature: self.temperature,
            frequency_penalty: 0.2,
            end_tokens: vec![END_TOKEN],
            min_tokens: 1,
            ..SamplingParams::default()
        }
    }

    /// The noise of the first response, or of the one that takes its place.
    pub(crate) fn noise(&self, is_second: bool) -> Noise {
        Noise::new(self.seed, u32::from(is_second))
    }

    pub(crate) fn model(&self, peer: Peer) -> ToyModel {
        let target = ToyModel::new(self.seed, VOCAB_SIZE as usize);
        let other = !self.seed;
        match (peer, self.draft_model) {
            (Peer::Verifier, _) => target,
            (Peer::Drafter, DraftModel::Near) => target.near(other, 0.2),
            (Peer::Drafter, DraftModel::Unrelated) => ToyModel::new(other, VOCAB_SIZE as usize),
        }
    }

    /// The model of a peer that takes the place of another.
    pub(crate) fn other_model(&self) -> ToyModel {
        ToyModel::new(self.seed ^ (1 << 63), VOCAB_SIZE as usize)
    }

    /// Returns the seeded output that the target model generates one token after the other, without a session.
    pub(crate) fn target_alone(&self) -> Vec<TokenId> {
        self.alone(&self.model(Peer::Verifier))
    }

    /// Returns the seeded output that `model` generates one token after the other, without a session.
    pub(crate) fn alone(&self, model: &ToyModel) -> Vec<TokenId> {
        let noise = self.noise(false);
        let mut sequence = Sequence::new(self, model, noise, &[]);
        let mut output = Vec::new();
        while output.len() < self.max_tokens as usize && output.last() != Some(&END_TOKEN) {
            let token = choice(&sequence.probs(), &noise, output.len() as u32);
            sequence.push(token);
            output.push(token);
        }
        output
    }
}
