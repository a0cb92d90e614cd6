//! What a choice means for drafter, verifier and session.

use super::compatibility::Options;
use super::names::{
    PlanKind, TargetKind, of_cascade_k, of_draft_len, of_drafting, of_proposal, of_schedule,
    of_tree,
};
use super::table::{CASCADE_K, CASCADE_LENIENCE, CASCADE_MAX_GRAM_TOKENS};
use super::{EffectiveSetting, METHODS, Method};
use crate::cascade::CascadeSettings;
use crate::drafting::{DraftLen, Drafting, ProposalOptions, Schedule, StopRule, TreeShape};
use crate::proposal::ProposalForm;
use crate::session::Plan;
use crate::target::{Needs, TargetDistribution};
use crate::verification::{Draws, Verification};

/// What is carried out: a point on every axis, with all parameters. Made by [`Choice::resolve`].
#[derive(Clone, Debug)]
pub struct Choice {
    /// The method asked for.
    pub method: &'static Method,
    /// Which model does what, in which order.
    pub plan: Plan,
    /// The distribution the verifier draws from. Exact for the plans whose rule acts on who speaks:
    /// there the verifier's tokens are the target model's own.
    pub target: TargetDistribution,
    /// How a draft block is accepted.
    pub verification: Verification,
    /// The form in which the draft distribution is sent to the verifier.
    pub proposal: ProposalForm,
    /// Whether the coordinator decides acceptance, rather than the verifier.
    pub accept_at_coordinator: bool,
    /// When the drafter stops before the next token and hands over.
    pub stop_rule: StopRule,
    /// Who proposes.
    pub drafting: Drafting,
    /// What is set of the drafter's cascade; nothing in any other drafting.
    pub cascade: CascadeSettings,
    /// Whether the length of each block follows what is measured of acceptance, times and load.
    pub auto: bool,
    /// The shape of blocks.
    pub tree: TreeShape,
    /// Whether target and drafts take turns.
    pub schedule: Schedule,
    /// Most tokens of a chain, or levels of a tree, in a round; none where the request does not say.
    pub draft_most: Option<u32>,
    /// Like `target`, with the rule that acts through the plan, if one does.
    pub(super) target_kind: TargetKind,
    /// What it is made of, as far as options must go together.
    pub(super) options: Options,
    /// Whether the pipeline's sampling distribution is the unscaled distribution.
    pub(super) unscaled_is_sampling: bool,
    pub(super) settings: Vec<EffectiveSetting>,
}

impl Choice {
    /// Name of the method asked for.
    pub fn name(&self) -> &'static str {
        self.method.name
    }

    /// Name of the method that the effective axes make: another one where axes given beside it turned
    /// the method asked for into it; the one asked for where they made something without a name.
    pub fn effective_name(&self) -> &'static str {
        let plan = PlanKind::from(self.plan);
        let family = |target: TargetKind| std::mem::discriminant(&target);
        let is_it = |method: &&Method| {
            let same_axes = family(TargetKind::of(method.target)) == family(self.target_kind)
                && method.verification == self.verification;
            method.plan == plan && (same_axes || plan != PlanKind::Speculative)
        };
        if is_it(&self.method) {
            return self.method.name;
        }
        // Where no method has this verification, the one of the same plan and target says most.
        let is_near = |method: &&Method| {
            let same_target = family(TargetKind::of(method.target)) == family(self.target_kind);
            method.plan == plan && same_target
        };
        let near = [self.method].into_iter().chain(METHODS).find(is_near);
        let found = METHODS.iter().find(is_it).or(near);
        found.unwrap_or(self.method).name
    }

    /// Every parameter it takes, with its value.
    pub fn settings(&self) -> &[EffectiveSetting] {
        &self.settings
    }

    /// Every parameter it takes and its value as text, for reports.
    pub fn effective_parameters(&self) -> impl Iterator<Item = (&'static str, String)> {
        let settings = self.settings.iter();
        settings.map(|setting| (setting.name, setting.value.to_string()))
    }

    /// Every axis and its value as text, for reports.
    pub fn effective_axes(&self) -> [(&'static str, String); 9] {
        let acceptor = if self.accept_at_coordinator {
            "coordinator"
        } else {
            "verifier"
        };
        [
            ("plan", PlanKind::from(self.plan).name().to_owned()),
            ("target", self.target_kind.name().to_owned()),
            ("verification", self.verification.name.to_owned()),
            ("proposal", of_proposal(self.proposal)),
            ("accept_at", acceptor.to_owned()),
            ("drafting", of_drafting(self.drafting).to_owned()),
            ("draft_len", of_draft_len(self.draft_len())),
            ("tree", of_tree(self.tree)),
            ("schedule", of_schedule(self.schedule).to_owned()),
        ]
    }

    /// What is set of the drafter's cascade and its values as text, for reports.
    pub fn effective_cascade(&self) -> impl Iterator<Item = (&'static str, String)> {
        let CascadeSettings {
            k,
            lenience,
            max_gram_tokens,
        } = &self.cascade;
        let set = [
            (CASCADE_K.name, k.as_deref().map(of_cascade_k)),
            (CASCADE_LENIENCE.name, lenience.map(|it| it.to_string())),
            (
                CASCADE_MAX_GRAM_TOKENS.name,
                max_gram_tokens.map(|it| it.to_string()),
            ),
        ];
        let given = set.into_iter();
        given.filter_map(|(name, value)| Some((name, value?)))
    }

    /// Whether the target decodes all along, and takes drafts as they come.
    pub fn streams(&self) -> bool {
        self.schedule == Schedule::Stream
    }

    /// Whether every token is an exact sample of the target model.
    pub fn is_lossless(&self) -> bool {
        match self.plan {
            Plan::Speculative | Plan::TargetOnly | Plan::OracleCascade => self.target.is_exact(),
            Plan::DraftOnly
            | Plan::TokenCascade { .. }
            | Plan::SequenceCascade { .. }
            | Plan::Bild { .. } => false,
        }
    }

    /// Whether the verifier decides or draws every token of the output, so that it can tell something of each.
    pub fn target_reads_every_token(&self) -> bool {
        match self.plan {
            Plan::Speculative | Plan::TargetOnly | Plan::OracleCascade => true,
            Plan::Bild {
                verify_on_finish, ..
            } => verify_on_finish,
            Plan::DraftOnly | Plan::TokenCascade { .. } | Plan::SequenceCascade { .. } => false,
        }
    }

    /// Whether a seed gives the same tokens whatever was retried or moved, and however blocks were
    /// cut: every token is then a choice under the shared noise, keyed by its position. What the
    /// draft model says may still matter, see [`Choice::depends_on_draft`]. (At temperature 0 the
    /// other verifications repeat themselves too.)
    pub fn is_reproducible(&self) -> bool {
        self.verification.draws == Draws::Shared
    }

    /// Whether tokens drawn from the target model alone are not what was asked for.
    pub fn depends_on_draft(&self) -> bool {
        !self.is_lossless()
    }

    /// What the target distribution must be told at each position.
    pub fn needs(&self) -> Needs {
        self.options.needs()
    }

    /// Whether the verifier needs the draft distribution: for the target distribution, or to test a draft token
    /// against the distribution it was drawn from. Not where that distribution is one-hot: at temperature
    /// 0, and with Max-Gram.
    pub fn needs_draft_probs(&self) -> bool {
        self.options.needs_draft_probs()
    }

    /// How many tokens are drafted in a round, as it is asked for. Fixed for plans that end a draft by a
    /// rule of their own, see [`Choice::stop_rule`].
    pub fn draft_len(&self) -> DraftLen {
        match self.stop_rule {
            _ if self.auto => DraftLen::Auto,
            rule if self.plan == Plan::Speculative && rule.policy().is_some() => {
                DraftLen::Stop(rule)
            }
            _ => DraftLen::Fixed,
        }
    }

    /// Whether the draft distribution is needed at the position after the block, too: see
    /// [`TargetDistribution::mixes_bonus`].
    pub fn bonus_q(&self) -> bool {
        self.needs().draft_probs && self.target.mixes_bonus(self.verification)
    }

    /// What the drafter sends to the verifier of its distributions.
    pub fn proposal_options(&self) -> ProposalOptions {
        let needs = self.needs();
        // A whole distribution that was not cut, rounded or scaled is the unscaled distribution itself.
        let is_dense = self.proposal == ProposalForm::Dense { half: false };
        ProposalOptions {
            form: self.proposal,
            confidence: needs.max || needs.entropy,
            unscaled: needs.draft_unscaled && !(is_dense && self.unscaled_is_sampling),
        }
    }

    /// Whether the drafter sends the unscaled log probability of each token, by which its answer is
    /// scored.
    pub fn scores(&self) -> bool {
        matches!(self.plan, Plan::SequenceCascade { .. })
    }

    /// Whether the target may discard the whole output and generate anew, with noise of its own.
    pub fn regenerates(&self) -> bool {
        matches!(self.plan, Plan::SequenceCascade { .. })
    }
}
