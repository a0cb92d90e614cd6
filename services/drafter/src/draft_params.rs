//! What a round asks for, if this drafter can do it.

use std::sync::Arc;

use peer::RoundError;
use speculation::cascade::CascadeConfig;
use speculation::drafting::{DraftLen, Drafting, Schedule, StopRule, TreeShape};
use speculation::methods::Options;
use speculation::methods::names::of_drafting;
use wire::open::{ProposalFields, SessionSpec};
use wire::status::BadField;
use wire::{drafting, v1};

use crate::proposers::{self, DraftSession, Drafter};

/// What is asked of a drafter in one round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DraftParams {
    /// Who drafts.
    pub(crate) drafting: Drafting,
    /// The cascade, as the request has it, where it drafts.
    pub(crate) cascade: Option<Arc<CascadeConfig>>,
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
    /// Returns why a block of `drafted` tokens, or levels, with no end token and no stop rule behind it, ends.
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
        BadField::in_range("max_tokens", wire.max_tokens, least..=limit)?;
        let (stop_rule, max_tokens) =
            drafting::rule_from_wire(wire.draft_length.as_ref(), wire.max_tokens)?;
        let drafting = who(drafter, wire.drafting)?;
        let requested = Self {
            drafting,
            cascade: cascade(drafter, drafting, wire.cascade.as_ref())?,
            max_tokens,
            is_cut: false,
            bonus_q: wire.bonus_q,
            stop_rule,
            tree: drafting::shape_from_wire(wire.tree)?,
        };
        requested.check_options(spec)?;
        requested.check_capabilities(drafter, spec, limit)?;
        Ok(requested)
    }

    /// Checks that what is requested goes together with the session.
    fn check_options(&self, spec: &SessionSpec) -> Result<(), BadField> {
        let options = Options {
            target: spec.target,
            verification: spec.verification,
            drafting: self.drafting,
            draft_len: match self.stop_rule.policy() {
                Some(_) => DraftLen::Stop(self.stop_rule),
                None => DraftLen::Fixed,
            },
            tree: self.tree,
            schedule: Schedule::Rounds,
            accept_at_coordinator: spec.accept_at_coordinator,
            greedy: spec.sampling.temperature == 0.0,
            proposal: Some(spec.proposal_form),
            bonus_q: self.bonus_q,
            more_fields: spec.proposal_fields != ProposalFields::default(),
        };
        options.check().map_err(|bad| {
            let field = match &bad.field[..] {
                "draft_len" => "draft_length",
                "proposal" => "proposal_form",
                field => field,
            };
            BadField::new(field, bad.problem)
        })
    }

    /// Checks that this drafter can do it.
    fn check_capabilities(
        &self,
        drafter: &Drafter,
        spec: &SessionSpec,
        limit: u32,
    ) -> Result<(), BadField> {
        let cascade = self.cascade.as_ref();
        let draws = spec.verification.reads_draft && spec.sampling.temperature > 0.0;
        if self.drafting == Drafting::Cascade
            && draws
            && let Some(Err(problem)) = cascade.map(|held| held.check_form(spec.proposal_form))
        {
            return Err(BadField::new("drafting", format!("'cascade' {problem}")));
        }
        if self.drafting == Drafting::Model
            && self.stop_rule.needs_head()
            && let Some(label) = spec.verification.label
            && drafter.role.head(label).is_none()
        {
            let problem = format!(
                "'{}' has no acceptance head for label '{}'; train one with `outrider-bench train-head`",
                drafter.description.model,
                label.name()
            );
            return Err(BadField::new("draft_length.learned", problem));
        }
        let width = self.tree.width();
        let nodes = u64::from(width) * u64::from(self.max_tokens);
        if width > 1 && nodes > u64::from(limit) {
            let levels = self.max_tokens;
            let problem =
                format!("{levels} levels of {width} nodes are {nodes}, expected at most {limit}");
            return Err(BadField::new("tree", problem));
        }
        Ok(())
    }

    /// Returns the same, as far as the models' contexts have room after `base_len` output tokens.
    ///
    /// # Errors
    /// If there is no room at all.
    pub(crate) fn within_context(
        mut self,
        drafter: &Drafter,
        session: &DraftSession,
        base_len: u32,
    ) -> Result<Self, RoundError> {
        let is_own = proposers::translator(drafter, &session.spec)?.is_none();
        let context_len = proposers::context_len(drafter, self.drafting);
        // A text that is translated slides through a context that is too short.
        let Some(context_len) = context_len.filter(|_| is_own) else {
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

/// Returns the cascade that drafts, with what a request sets of it.
fn cascade(
    drafter: &Drafter,
    drafting: Drafting,
    wire: Option<&v1::CascadeSettings>,
) -> Result<Option<Arc<CascadeConfig>>, BadField> {
    let settings = drafting::cascade_from_wire(wire);
    let held = drafter.role.cascade.as_ref();
    match held.filter(|_| drafting == Drafting::Cascade) {
        Some(held) if settings.is_empty() => Ok(Some(Arc::clone(held))),
        Some(held) => Ok(Some(Arc::new(held.with(&settings)?))),
        None if settings.is_empty() => Ok(None),
        None => Err(BadField::new("cascade", "goes with drafting CASCADE only")),
    }
}

/// Returns who drafts, if this drafter holds them.
fn who(drafter: &Drafter, wire: i32) -> Result<Drafting, BadField> {
    let held = &drafter.role.draftings;
    let Some(requested) = drafting::from_wire(wire)? else {
        return Ok(held[0]);
    };
    if held.contains(&requested) {
        return Ok(requested);
    }
    let name = &drafter.description.model;
    let lacks = match requested {
        Drafting::Model => "holds no draft model",
        Drafting::MaxGram => "offers no max-gram",
        Drafting::Cascade => {
            "holds no cascade of draft models; set drafter.cascade or drafter.bigram"
        }
    };
    let problem = format!("'{}': drafter '{name}' {lacks}", of_drafting(requested));
    Err(BadField::new("drafting", problem))
}
