//! What a drafter must be able to do for a request.

use speculation::drafting::{AcceptanceLabel, Drafting, StopRule};
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
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
    /// What `method` needs.
    pub(crate) fn of(method: &Choice) -> Self {
        let learned = matches!(method.stop_rule, StopRule::Learned { .. });
        let label = AcceptanceLabel::of(method.verification);
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
        self.is_special() || self.is_tree()
    }

    fn is_tree(self) -> bool {
        self.width > 1
    }

    /// The refusal of special requirements where model `group` has no drafter at all.
    pub(crate) fn without_drafters(self, group: &str) -> BadField {
        let field = match self.drafting {
            Drafting::Model => "draft_length",
            Drafting::MaxGram | Drafting::Cascade => "drafting",
        };
        BadField::new(field, format!("needs a drafter, model '{group}' has none"))
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
        let drafts_so = match &drafter.draftings[..] {
            // From before there was a choice.
            [] => wanted == v1::Drafting::Model,
            draftings => draftings.contains(&wanted.into()),
        };
        if !drafts_so {
            return refused(
                "drafting",
                match self.drafting {
                    Drafting::Model => "has no draft model; ask for drafting max-gram",
                    Drafting::MaxGram => {
                        "has no bigram table, which max-gram falls back on; make one with outrider \
                         bigram build"
                    }
                    Drafting::Cascade => {
                        "holds no cascade of draft models; configure drafter.cascade there"
                    }
                },
            );
        }
        if let Some(label) = self.label
            && !drafter.heads.iter().any(|&head| predicts(head, label))
        {
            let problem = format!(
                "has no acceptance head for label '{}'; train one with outrider-bench train-head",
                label.name()
            );
            return refused("draft_length", &problem);
        }
        let is_lenient = drafter.cascade.as_ref().is_some_and(|held| held.lenient);
        if self.drafting == Drafting::Cascade && self.cuts_proposals && is_lenient {
            let problem = "holds a lenient cascade, whose draft laws cannot be cut after tokens were \
                           drawn; ask for DENSE_F32 (--proposal dense:f32), or for verification COUPLED";
            return refused("proposal_form", problem);
        }
        if self.is_tree() && !drafter.trees {
            return refused("tree", "does not draft trees; ask for a chain");
        }
        let limits = drafter.limits.unwrap_or_default();
        if self.width > limits.max_draft_tokens.max(1) {
            let problem = format!(
                "drafts at most {} tokens in a round, a level of the tree has {}",
                limits.max_draft_tokens, self.width
            );
            return refused("tree", &problem);
        }
        Ok(())
    }
}

fn predicts(head: v1::AcceptanceHead, label: AcceptanceLabel) -> bool {
    head.label() == drafting::label_to_wire(label)
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

    fn refusal(
        requirements: DrafterRequirements,
        drafter: &v1::PeerDescription,
    ) -> (String, String) {
        let bad = requirements.check(drafter).expect_err("refused");
        (bad.field, bad.problem)
    }

    fn able(draftings: &[v1::Drafting]) -> v1::PeerDescription {
        v1::PeerDescription {
            model: "x".to_owned(),
            draftings: draftings.iter().map(|&drafting| drafting.into()).collect(),
            limits: Some(v1::PeerLimits {
                max_draft_tokens: 8,
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_drafter_that_says_nothing_has_a_model_and_no_more() {
        let plain = able(&[]);
        assert!(MODEL.check(&plain).is_ok() && !MODEL.is_special());
        for (drafting, words) in [
            (Drafting::MaxGram, "'x' has no bigram table"),
            (Drafting::Cascade, "'x' holds no cascade"),
        ] {
            let requirements = DrafterRequirements { drafting, ..MODEL };
            assert!(requirements.is_special());
            let (field, problem) = refusal(requirements, &plain);
            assert!(field == "drafting" && problem.contains(words), "{problem}");
            assert!(
                requirements
                    .check(&able(&[drafting::to_wire(drafting)]))
                    .is_ok()
            );
        }
        let (field, problem) = refusal(MODEL, &able(&[v1::Drafting::MaxGram]));
        assert!(field == "drafting" && problem.contains("no draft model"));
    }

    #[test]
    fn a_head_must_have_the_label_of_the_verification() {
        let requirements = DrafterRequirements {
            label: Some(AcceptanceLabel::Rejection),
            ..MODEL
        };
        let mut drafter = able(&[v1::Drafting::Model]);
        drafter.heads.push(v1::AcceptanceHead {
            label: v1::Verification::Coupled.into(),
            depth: 1,
        });
        let (field, problem) = refusal(requirements, &drafter);
        assert_eq!(field, "draft_length");
        assert!(
            problem.contains("label 'rejection'") && problem.contains("outrider-bench train-head")
        );
        drafter.heads[0].label = v1::Verification::Token.into();
        assert!(requirements.check(&drafter).is_ok());
        let coupled = DrafterRequirements {
            label: Some(AcceptanceLabel::Coupled),
            ..MODEL
        };
        assert!(refusal(coupled, &drafter).1.contains("label 'coupled'"));
    }

    #[test]
    fn proposals_of_a_lenient_cascade_are_not_cut() {
        let requirements = DrafterRequirements {
            drafting: Drafting::Cascade,
            cuts_proposals: true,
            ..MODEL
        };
        let mut drafter = able(&[v1::Drafting::Model, v1::Drafting::Cascade]);
        drafter.cascade = Some(v1::DraftCascade {
            lenient: true,
            ..Default::default()
        });
        assert_eq!(refusal(requirements, &drafter).0, "proposal_form");
        let whole = DrafterRequirements {
            cuts_proposals: false,
            ..requirements
        };
        let alone = DrafterRequirements {
            drafting: Drafting::Model,
            ..requirements
        };
        assert!(whole.check(&drafter).is_ok() && alone.check(&drafter).is_ok());
        drafter.cascade = Some(v1::DraftCascade::default());
        assert!(requirements.check(&drafter).is_ok());
    }

    #[test]
    fn a_tree_is_for_those_who_draft_them_and_a_level_fits_into_a_block() {
        let (wide, wider) = (
            DrafterRequirements { width: 8, ..MODEL },
            DrafterRequirements { width: 9, ..MODEL },
        );
        let of_chains = able(&[]);
        let of_trees = v1::PeerDescription {
            trees: true,
            ..able(&[])
        };
        assert!(wide.check(&of_trees).is_ok() && MODEL.check(&of_chains).is_ok());
        assert!(wide.needs_asking() && !MODEL.needs_asking());
        let (field, problem) = refusal(wide, &of_chains);
        assert!(
            field == "tree" && problem.contains("'x' does not draft trees"),
            "{problem}"
        );
        let (field, problem) = refusal(wider, &of_trees);
        assert!(
            field == "tree" && problem.contains("at most 8"),
            "{problem}"
        );
    }
}
