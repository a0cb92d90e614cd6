//! What a round asks for, if this drafter can do it.

use peer::RoundError;
use speculation::drafting::{Drafting, StopRule, TreeShape};
use speculation::methods::names::of_drafting;
use speculation::proposal::ProposalForm;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;
use wire::open::{ProposalFields, SessionSpec};
use wire::status::BadField;
use wire::{drafting, v1};

use crate::proposers::{self, DraftSession, Drafter};

/// What is asked of a drafter in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DraftParams {
    /// Who drafts.
    pub(crate) drafting: Drafting,
    /// Most tokens; of a tree, most levels.
    pub(crate) max_tokens: u32,
    /// Whether `max_tokens` is less than was wanted, because the context is full there.
    pub(crate) is_cut: bool,
    /// Whether the distribution at the position after the block is wanted.
    pub(crate) bonus_q: bool,
    /// When to stop before `max_tokens`.
    pub(crate) stop_rule: StopRule,
    /// Shape of the block.
    pub(crate) tree: TreeShape,
}

impl DraftParams {
    /// Why a block of `drafted` tokens, or levels, with no end token and no stop rule behind it, ends.
    pub(crate) fn cause(&self) -> v1::StopCause {
        if self.is_cut {
            v1::StopCause::Context
        } else {
            v1::StopCause::Length
        }
    }

    /// Reads what `wire` asks of `drafter`.
    ///
    /// # Errors
    /// Names the field that is out of range, or what this drafter cannot do.
    pub(crate) fn from_wire(
        drafter: &Drafter,
        spec: &SessionSpec,
        wire: &v1::DraftRound,
    ) -> Result<Self, BadField> {
        let limits = drafter.description.limits.unwrap_or_default();
        let (least, limit) = (u32::from(!wire.bonus_q), limits.max_draft_tokens);
        if !(least..=limit).contains(&wire.max_tokens) {
            let asked = wire.max_tokens;
            let problem = format!("{asked} is out of range, expected {least} to {limit}");
            return Err(BadField::new("max_tokens", problem));
        }
        let (stop_rule, max_tokens) =
            drafting::rule_from_wire(wire.draft_length.as_ref(), wire.max_tokens)?;
        let asked = Self {
            drafting: who(drafter, wire.drafting)?,
            max_tokens,
            is_cut: false,
            bonus_q: wire.bonus_q,
            stop_rule,
            tree: drafting::shape_from_wire(wire.tree)?,
        };
        asked.check_who(drafter, spec)?;
        asked.check_length(drafter, spec)?;
        asked.check_tree(spec, limit)?;
        Ok(asked)
    }

    /// Whether those who are to draft can tell what the session wants to know.
    fn check_who(&self, drafter: &Drafter, spec: &SessionSpec) -> Result<(), BadField> {
        let refused = |problem: String| {
            let who = of_drafting(self.drafting);
            Err(BadField::new("drafting", format!("'{who}' {problem}")))
        };
        if self.drafting == Drafting::Model {
            return Ok(());
        }
        if spec.target != TargetDistribution::Exact {
            let problem = "goes with the exact target only: others need the draft model's distribution at each \
                           position";
            return refused(problem.to_owned());
        }
        if spec.verification.is_bild() {
            return refused("does not go with BiLD, whose draft model hands over".to_owned());
        }
        if self.bonus_q {
            return refused("has no distribution at the position after a block".to_owned());
        }
        if spec.proposal_fields != ProposalFields::default() {
            return refused("tells of its tokens nothing but their distributions".to_owned());
        }
        let form = spec.proposal_form;
        let sends_nothing = !spec.verification.reads_draft;
        match self.drafting {
            Drafting::MaxGram if form == ProposalForm::Point || sends_nothing => Ok(()),
            Drafting::MaxGram => {
                refused("sends distributions of one token, expected proposal form POINT".to_owned())
            }
            Drafting::Cascade if spec.verification.carries_layers => refused(
                "does not go with greedy block verification, whose residual needs one draft model's \
                 distributions; choose block verification"
                    .to_owned(),
            ),
            Drafting::Cascade if sends_nothing => Ok(()),
            // Every distribution is one-hot then, and is sent as such in each form but NONE.
            Drafting::Cascade
                if spec.sampling.temperature == 0.0 && form != ProposalForm::None =>
            {
                Ok(())
            }
            _ => match drafter.role.cascade.as_ref().map(|to| to.check_form(form)) {
                Some(Err(problem)) => refused(problem.to_string()),
                _ => Ok(()),
            },
        }
    }

    /// Whether drafting can stop as asked.
    fn check_length(&self, drafter: &Drafter, spec: &SessionSpec) -> Result<(), BadField> {
        let refused = |problem: &str| Err(BadField::new("draft_length", problem));
        let Some((policy, _)) = self.stop_rule.policy() else {
            return Ok(());
        };
        if self.drafting != Drafting::Model {
            let problem = format!(
                "'{}' reads a draft model, and '{}' drafts",
                policy.name,
                of_drafting(self.drafting)
            );
            return refused(&problem);
        }
        if spec.verification.carries_layers {
            return refused(
                "greedy block verification needs a length that does not depend on what is drafted; \
                 leave the policy out, or choose block verification",
            );
        }
        if !self.stop_rule.needs_head() {
            return Ok(());
        }
        let Some(label) = spec.verification.label else {
            return refused("no acceptance head predicts what BiLD keeps");
        };
        if drafter.role.head(label).is_some() {
            return Ok(());
        }
        let model = &drafter.description.model;
        let problem = format!(
            "'{model}' has no acceptance head for label '{}'; train one with `outrider-bench train-head`",
            label.name()
        );
        Err(BadField::new("draft_length.learned", problem))
    }

    /// Whether a tree can be verified, and is not too large.
    fn check_tree(&self, spec: &SessionSpec, limit: u32) -> Result<(), BadField> {
        let refused = |problem: String| Err(BadField::new("tree", problem));
        let width = self.tree.width();
        let nodes = u64::from(width) * u64::from(self.max_tokens);
        match self.tree {
            TreeShape::Chain => Ok(()),
            _ if spec.verification != Verification::COUPLED
                || spec.target != TargetDistribution::Exact =>
            {
                refused("goes with coupled verification and the exact target only".to_owned())
            }
            _ if spec.proposal_form != ProposalForm::None
                || spec.proposal_fields != ProposalFields::default() =>
            {
                refused(
                    "distributions are not told of a tree, expected proposal form NONE".to_owned(),
                )
            }
            _ if self.bonus_q => refused("a tree has no one position after it".to_owned()),
            _ if self.drafting == Drafting::MaxGram => refused(
                "'max-gram' proposes one token a position, there are no siblings".to_owned(),
            ),
            _ if nodes > u64::from(limit) => refused(format!(
                "{} levels of {width} nodes are {nodes}, expected at most {limit}",
                self.max_tokens
            )),
            _ => Ok(()),
        }
    }

    /// The same, as far as the models' contexts have room after `base_len` output tokens.
    ///
    /// # Errors
    /// If there is no room at all.
    pub(crate) fn within_context(
        mut self,
        drafter: &Drafter,
        session: &DraftSession,
        base_len: u32,
    ) -> Result<Self, RoundError> {
        let Some(context_len) = proposers::context_len(drafter, self.drafting) else {
            return Ok(self);
        };
        let len = session.spec.lead().len() + base_len as usize;
        // The last draft token is not forwarded, and needs no place, unless the distribution after it is wanted.
        let last = usize::from(!self.bonus_q);
        match (context_len + 1).saturating_sub(len) {
            0 => Err(RoundError::ContextFull { len, context_len }),
            free => {
                let room = (free + last - 1) as u32;
                self.is_cut = room < self.max_tokens;
                self.max_tokens = self.max_tokens.min(room);
                Ok(self)
            }
        }
    }
}

/// Who drafts, if this drafter holds them.
fn who(drafter: &Drafter, wire: i32) -> Result<Drafting, BadField> {
    let held = &drafter.role.draftings;
    let Some(asked) = drafting::from_wire(wire)? else {
        return Ok(held[0]);
    };
    if held.contains(&asked) {
        return Ok(asked);
    }
    let name = &drafter.description.model;
    let lacks = match asked {
        Drafting::Model => "holds no draft model",
        Drafting::MaxGram => {
            "has no bigram table; make one with `outrider bigram build` and set drafter.bigram"
        }
        Drafting::Cascade => {
            "holds no cascade of draft models; set drafter.cascade or drafter.bigram"
        }
    };
    let problem = format!("'{}': drafter '{name}' {lacks}", of_drafting(asked));
    Err(BadField::new("drafting", problem))
}
