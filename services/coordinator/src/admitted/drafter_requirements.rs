//! What a drafter must be able to do for a request.

use speculation::drafting::Drafting;
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::verification::AcceptanceLabel;
use wire::status::BadField;
use wire::{drafting, v1};

/// What a drafter must be able to do for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrafterRequirements {
    drafting: Drafting,
    /// The label of the acceptance head that stops drafts.
    label: Option<AcceptanceLabel>,
    /// Whether the distributions that draft tokens are drawn from are sent cut or rounded.
    cuts_proposals: bool,
    /// Nodes of one level of a draft block.
    width: u32,
}

impl DrafterRequirements {
    /// Returns what `method` needs of a drafter.
    pub(crate) fn of(method: &Choice) -> Self {
        let learned = method.stop_rule.needs_head() && method.drafting == Drafting::Model;
        let label = method.verification.label;
        Self {
            drafting: method.drafting,
            label: label.filter(|_| learned),
            cuts_proposals: matches!(
                method.proposal,
                ProposalForm::Sparse { .. } | ProposalForm::Dense { half: true }
            ),
            width: method.tree.width(),
        }
    }

    /// Whether it is more than every drafter with a draft model can do.
    pub(crate) fn is_special(self) -> bool {
        self.drafting != Drafting::Model || self.label.is_some()
    }

    /// Whether a drafter must be asked before it is known to do it.
    pub(crate) fn needs_asking(self) -> bool {
        self.is_special() || self.width > 1
    }

    /// The refusal of special requirements where there is no drafter at all, which `reason` explains.
    pub(crate) fn without_drafters(self, reason: &str) -> BadField {
        let field = match self.drafting {
            Drafting::Model => "settings.draft_len",
            Drafting::MaxGram | Drafting::Cascade => "settings.drafting",
        };
        BadField::new(field, format!("needs a drafter, {reason}"))
    }

    /// Checks that `drafter` can do it.
    ///
    /// # Errors
    /// Names the field of the request, the drafter, what it lacks and where that comes from.
    pub(crate) fn check(self, drafter: &v1::PeerDescription) -> Result<(), BadField> {
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
        if let Some(label) = self.label
            && !has_head(drafter, label)
        {
            let problem = format!(
                "has no acceptance head for label '{}'; train one with outrider-bench train-head",
                label.name()
            );
            return refused("settings.draft_len", &problem);
        }
        let is_lenient = drafter.cascade.as_ref().is_some_and(|held| held.lenient);
        if self.drafting == Drafting::Cascade && self.cuts_proposals && is_lenient {
            let problem = "holds a lenient cascade, whose draft distributions cannot be cut after tokens were \
                           drawn; ask for proposal dense:f32, or for verification coupled";
            return refused("settings.proposal", problem);
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

/// Whether `drafter` has an acceptance head for `label`.
pub(crate) fn has_head(drafter: &v1::PeerDescription, label: AcceptanceLabel) -> bool {
    let wanted = drafting::label_to_wire(label);
    drafter.heads.iter().any(|head| head.label() == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: DrafterRequirements = DrafterRequirements {
        drafting: Drafting::Model,
        label: None,
        cuts_proposals: false,
        width: 1,
    };

    /// Checks what a drafter that changes one of a model alone so says to requirements: a field and words, or nothing.
    fn says(
        requirements: DrafterRequirements,
        change: fn(&mut v1::PeerDescription),
        expected: Option<(&str, &str)>,
    ) {
        let mut drafter = v1::PeerDescription {
            model: "x".to_owned(),
            draftings: vec![v1::Drafting::Model.into()],
            limits: Some(v1::PeerLimits {
                max_draft_tokens: 8,
                ..Default::default()
            }),
            ..Default::default()
        };
        change(&mut drafter);
        match (requirements.check(&drafter), expected) {
            (Ok(()), None) => {}
            (Err(bad), Some((field, words))) if bad.field == field => {
                assert!(bad.problem.contains(words), "{bad}");
            }
            (found, expected) => panic!("{requirements:?}: {found:?}, not {expected:?}"),
        }
    }

    const MAX_GRAM: DrafterRequirements = DrafterRequirements {
        drafting: Drafting::MaxGram,
        ..MODEL
    };
    const CASCADE: DrafterRequirements = DrafterRequirements {
        drafting: Drafting::Cascade,
        ..MODEL
    };

    #[test]
    fn a_drafter_drafts_in_the_ways_that_it_names() {
        says(MODEL, |_| {}, None);
        says(
            MAX_GRAM,
            |_| {},
            Some(("settings.drafting", "'x' offers no max-gram")),
        );
        says(
            CASCADE,
            |_| {},
            Some(("settings.drafting", "'x' holds no cascade")),
        );
        let of_max_gram = |drafter: &mut v1::PeerDescription| {
            drafter.draftings = vec![v1::Drafting::MaxGram.into()];
        };
        says(MAX_GRAM, of_max_gram, None);
        says(
            MODEL,
            of_max_gram,
            Some(("settings.drafting", "no draft model")),
        );
        assert!(MAX_GRAM.is_special() && CASCADE.is_special() && !MODEL.is_special());
    }

    #[test]
    fn a_head_must_have_the_label_of_the_verification() {
        let of_label = |label| DrafterRequirements {
            label: Some(label),
            ..MODEL
        };
        let holds_rejection = |drafter: &mut v1::PeerDescription| {
            drafter.heads.push(v1::AcceptanceHead {
                label: v1::Verification::Token.into(),
                depth: 1,
            });
        };
        let lacks = (
            "settings.draft_len",
            "label 'coupled'; train one with outrider-bench train-head",
        );
        says(of_label(AcceptanceLabel::Rejection), holds_rejection, None);
        says(
            of_label(AcceptanceLabel::Coupled),
            holds_rejection,
            Some(lacks),
        );
    }

    #[test]
    fn proposals_of_a_lenient_cascade_are_not_cut() {
        let cut = |of| DrafterRequirements {
            cuts_proposals: true,
            ..of
        };
        let strict = |drafter: &mut v1::PeerDescription| {
            drafter.draftings = vec![v1::Drafting::Model.into(), v1::Drafting::Cascade.into()];
            drafter.cascade = Some(v1::DraftCascade::default());
        };
        let lenient = |drafter: &mut v1::PeerDescription| {
            drafter.draftings = vec![v1::Drafting::Model.into(), v1::Drafting::Cascade.into()];
            drafter.cascade.get_or_insert_default().lenient = true;
        };
        says(
            cut(CASCADE),
            lenient,
            Some(("settings.proposal", "lenient")),
        );
        says(CASCADE, lenient, None);
        says(cut(MODEL), lenient, None);
        says(cut(CASCADE), strict, None);
    }

    #[test]
    fn a_level_of_a_tree_fits_into_a_block() {
        let wide = |width| DrafterRequirements { width, ..MODEL };
        says(wide(8), |_| {}, None);
        says(wide(9), |_| {}, Some(("settings.tree", "at most 8")));
        assert!(wide(8).needs_asking() && !MODEL.needs_asking());
    }
}
