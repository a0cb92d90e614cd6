//! What peers must be able to do for a request.

use speculation::cascade::CascadeSettings;
use speculation::certificate::refusal::{self, RowRefusal};
use speculation::drafting::{Drafting, TreeShape};
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::sampling::SamplingParams;
use speculation::session::{Peer, Plan};
use speculation::verification::AcceptanceLabel;
use wire::describe::{AHEAD, CASCADE_SETTINGS, STOPPED_LAYERS, TOKEN_TREES, TRANSLATED};
use wire::open::needs_whole_rows;
use wire::settings::FIELD;
use wire::status::BadField;
use wire::{drafting, v1};

/// What the peers must be able to do for a request.
#[derive(Clone, Copy, Debug)]
pub struct Requirements {
    /// The drafter.
    pub drafter: DrafterRequirements,
    /// The verifier.
    pub verifier: VerifierRequirements,
}

impl Requirements {
    /// Checks that `peer`, which is `described` so, can do it.
    ///
    /// # Errors
    /// Names the field of the request, the peer and what it lacks.
    pub fn check(self, peer: Peer, described: &v1::PeerDescription) -> Result<(), BadField> {
        match peer {
            Peer::Drafter => self.drafter.check(described),
            Peer::Verifier => self.verifier.check(described),
        }
    }
}

/// What a request sets of a drafter's cascade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CascadeRequirements {
    /// How many drafts its matrix K is for, if it gives one.
    drafts: Option<usize>,
    /// Whether reviews are lenient, if it says.
    is_lenient: Option<bool>,
}

impl CascadeRequirements {
    fn of(settings: &CascadeSettings) -> Option<Self> {
        (!settings.is_empty()).then(|| Self {
            drafts: settings.k.as_ref().map(Vec::len),
            is_lenient: settings.lenience.map(|lenience| lenience > 1.0),
        })
    }

    /// Checks that `drafter`, which holds a cascade, takes the settings.
    ///
    /// # Errors
    /// Names the field and what is wrong with the drafter.
    fn check(self, drafter: &v1::PeerDescription) -> Result<(), (&'static str, String)> {
        let features = &drafter.features;
        if !features.iter().any(|feature| feature == CASCADE_SETTINGS) {
            let problem =
                "takes no settings of its cascade; leave them out, or bring it up to date";
            return Err(("settings.cascade_k", problem.to_owned()));
        }
        let held = drafter
            .cascade
            .as_ref()
            .map_or(&[][..], |held| &held.models);
        match self.drafts {
            Some(rows) if rows != held.len() => {
                let (drafts, names) = (held.len(), held.join(", "));
                let problem = format!(
                    "has a cascade of {drafts} drafts ({names}), and the matrix is for {rows}"
                );
                Err(("settings.cascade_k", problem))
            }
            _ => Ok(()),
        }
    }
}

/// What a drafter must be able to do for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrafterRequirements {
    drafting: Drafting,
    /// What the request sets of its cascade, if anything.
    cascade: Option<CascadeRequirements>,
    /// Whether it must draft ahead of what the target chooses.
    ahead: bool,
    /// The label of the acceptance head that stops drafts.
    label: Option<AcceptanceLabel>,
    /// Whether the distributions that draft tokens are drawn from are sent cut or rounded.
    cuts_proposals: bool,
    /// Whether its draft tokens are enough, without their distributions.
    takes_any: bool,
    /// Nodes of one level of a draft block.
    width: u32,
}

impl DrafterRequirements {
    /// Returns what `method` needs of a drafter.
    pub fn of(method: &Choice) -> Self {
        let learned = method.stop_rule.needs_head() && method.drafting == Drafting::Model;
        let label = method.verification.label;
        Self {
            // In schedule `stream` the coordinator copies, and no drafter is asked to.
            drafting: match method.drafting {
                Drafting::MaxGram if method.streams() => Drafting::default(),
                drafting => drafting,
            },
            cascade: CascadeRequirements::of(&method.cascade),
            ahead: method.streams() && method.drafting != Drafting::MaxGram,
            label: label.filter(|_| learned),
            cuts_proposals: matches!(
                method.proposal,
                ProposalForm::Sparse { .. } | ProposalForm::Dense { half: true }
            ),
            takes_any: method.plan == Plan::Speculative
                && method.target.is_exact()
                && !method.proposal.sends_distributions()
                && !method.scores(),
            width: method.tree.width(),
        }
    }

    /// Returns whether it is more than every drafter with a draft model can do.
    pub(crate) fn is_special(self) -> bool {
        self.drafting != Drafting::Model || self.label.is_some() || self.ahead
    }

    /// Returns whether the request goes on without the drafter until it is heard: it drafts ahead, beside the target.
    pub(crate) fn drafts_ahead(self) -> bool {
        self.ahead
    }

    /// Returns whether a drafter must be asked before it is known to do it.
    pub(crate) fn needs_asking(self) -> bool {
        self.is_special() || self.width > 1 || !self.takes_any
    }

    /// Returns the refusal of special requirements where there is no drafter at all, which `reason` explains.
    pub(crate) fn without_drafters(self, reason: &str) -> BadField {
        let (field, rest) = match self.drafting {
            Drafting::Model if self.ahead => ("settings.schedule", ""),
            Drafting::Model => ("settings.draft_len", ""),
            Drafting::MaxGram => (
                "settings.drafting",
                "; by schedule stream, without a draft_len, what is copied from the text needs none",
            ),
            Drafting::Cascade => ("settings.drafting", ""),
        };
        BadField::new(field, format!("needs a drafter, {reason}{rest}"))
    }

    /// Checks that `drafter` can do it.
    ///
    /// # Errors
    /// Names the field of the request, the drafter, what it lacks and where that comes from.
    pub fn check(self, drafter: &v1::PeerDescription) -> Result<(), BadField> {
        let refused = |field: &str, problem: &str| {
            let problem = format!("drafter '{}' {problem}", drafter.model);
            Err(BadField::new(field, problem))
        };
        let wanted = drafting::to_wire(self.drafting);
        if !drafter.draftings.contains(&wanted.into()) {
            return refused(
                "settings.drafting",
                match self.drafting {
                    Drafting::Model => "has no draft model; ask for drafting max-gram",
                    Drafting::MaxGram => "offers no max-gram",
                    Drafting::Cascade => {
                        "holds no cascade of draft models; configure drafter.cascade there"
                    }
                },
            );
        }
        if self.ahead && !drafter.features.iter().any(|feature| feature == AHEAD) {
            let problem = "does not draft ahead; ask for schedule rounds, or bring it up to date";
            return refused("settings.schedule", problem);
        }
        if let Some(label) = self.label
            && !has_head(drafter, label)
        {
            let problem = format!(
                "has no acceptance head for label '{}'; train one with outrider-bench train-head",
                label.name()
            );
            return refused("settings.draft_len", &problem);
        }
        if let Some(wanted) = self.cascade {
            wanted
                .check(drafter)
                .or_else(|(field, problem)| refused(field, &problem))?;
        }
        let set = self.cascade.and_then(|wanted| wanted.is_lenient);
        let held = drafter.cascade.as_ref().is_some_and(|held| held.lenient);
        let is_lenient = set.unwrap_or(held);
        if self.drafting == Drafting::Cascade && self.cuts_proposals && is_lenient {
            let problem = "holds a lenient cascade, whose draft distributions cannot be cut after tokens were \
                           drawn; ask for proposal dense:f32, or for verification coupled";
            return refused("settings.proposal", problem);
        }
        let is_translated = drafter.features.iter().any(|feature| feature == TRANSLATED);
        if is_translated && !self.takes_any {
            let problem = "reads another vocabulary than the target's, and has no probabilities of the target's tokens; \
                           ask for method coupled";
            return refused("method", problem);
        }
        if is_translated && self.width > 1 {
            let problem = "reads another vocabulary than the target's, and drafts chains only";
            return refused("settings.tree", problem);
        }
        let limits = drafter.limits.unwrap_or_default();
        if self.width > limits.max_draft_tokens.max(1) {
            let problem = format!(
                "drafts at most {} tokens in a round, a level of the tree has {}",
                limits.max_draft_tokens, self.width
            );
            return refused("settings.tree", &problem);
        }
        Ok(())
    }
}

/// Returns whether `drafter` has an acceptance head for `label`.
pub fn has_head(drafter: &v1::PeerDescription, label: AcceptanceLabel) -> bool {
    let wanted = drafting::label_to_wire(label);
    drafter.heads.iter().any(|head| head.label() == wanted)
}

/// What a verifier must be able to do for a request, and some cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifierRequirements {
    /// Number of the verification, if it is the verifier that decides.
    verification: Option<i32>,
    /// Name of the verification.
    name: &'static str,
    has_tree: bool,
    /// Whether draft tokens are tested against the distribution that they were drawn from.
    tests_drafts: bool,
    /// Whether a stop rule ends residuals that last beyond their block.
    stops_layers: bool,
    /// What needs whole rows, if anything does.
    whole_rows: Option<RowRefusal>,
}

impl VerifierRequirements {
    /// Returns what `method` needs of a verifier, with tokens drawn by `params`.
    pub fn of(method: &Choice, params: &SamplingParams) -> Self {
        Self {
            verification: (!method.accept_at_coordinator).then_some(method.verification.wire),
            name: method.verification.name,
            has_tree: method.tree != TreeShape::Chain,
            tests_drafts: method.verification.reads_draft,
            stops_layers: method.stop_rule.policy().is_some() && method.verification.carries_layers,
            whole_rows: refusal::check(
                params,
                &method.target,
                method.verification,
                method.accept_at_coordinator,
            )
            .err(),
        }
    }

    /// Checks that `verifier` can do it.
    ///
    /// # Errors
    /// Names the field of the request, the verifier and what it lacks.
    pub fn check(self, verifier: &v1::PeerDescription) -> Result<(), BadField> {
        let refused = |field: &str, problem: &str| {
            let problem = format!("verifier '{}' {problem}", verifier.model);
            Err(BadField::new(field, problem))
        };
        if let Some(needs) = self.whole_rows
            && verifier.rows_are_parts
        {
            let mut bad = needs_whole_rows(needs, &verifier.model);
            if !bad.field.starts_with("sampling.") {
                bad.field = format!("{FIELD}.{}", bad.field);
            }
            return Err(bad);
        }
        let has = |feature: &str| verifier.features.iter().any(|name| name == feature);
        if let Some(verification) = self.verification
            && !verifier.verifications.contains(&verification)
        {
            let problem = format!("has no verification '{}' yet; ask for another", self.name);
            return refused("settings.verification", &problem);
        }
        if self.has_tree && !verifier.trees {
            return refused("settings.tree", "does not verify trees; ask for a chain");
        }
        if self.has_tree && self.tests_drafts && !has(TOKEN_TREES) {
            let problem = "does not verify trees by rejection yet; ask for a chain, or for verification coupled";
            return refused("settings.tree", problem);
        }
        if self.stops_layers && !has(STOPPED_LAYERS) {
            let problem = format!(
                "takes no stop rule with verification '{}' yet; ask for a fixed length",
                self.name
            );
            return refused("settings.draft_len", &problem);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
