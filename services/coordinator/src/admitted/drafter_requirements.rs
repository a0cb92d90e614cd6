//! What a drafter must be able to do for a request.

use speculation::drafting::Drafting;
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::verification::AcceptanceLabel;
use wire::describe::{MAX_GRAM_SURVIVAL, STOPPED_LAYERS, TOKEN_TREES};
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
    /// Whether draft tokens are tested against the distribution that they were drawn from.
    tests_drafts: bool,
    /// The feature that a stop rule needs here, and what it needs it for.
    rule: Option<(&'static str, &'static str)>,
}

impl DrafterRequirements {
    /// What `method` needs.
    pub(crate) fn of(method: &Choice) -> Self {
        let learned = method.stop_rule.needs_head() && method.drafting == Drafting::Model;
        let label = method.verification.label;
        let rule = method.stop_rule.policy().and_then(|_| match () {
            // It goes on to be asked after a whole block.
            () if method.verification.carries_layers => {
                Some((STOPPED_LAYERS, "verification BLOCK_GREEDY"))
            }
            () if method.drafting == Drafting::MaxGram => {
                Some((MAX_GRAM_SURVIVAL, "drafting max-gram"))
            }
            () => None,
        });
        Self {
            drafting: method.drafting,
            label: label.filter(|_| learned),
            cuts_proposals: matches!(
                method.proposal,
                ProposalForm::Sparse { .. } | ProposalForm::Dense { half: true }
            ),
            width: method.tree.width(),
            tests_drafts: method.verification.reads_draft,
            rule,
        }
    }

    /// Whether it is more than every drafter with a draft model can do.
    pub(crate) fn is_special(self) -> bool {
        self.drafting != Drafting::Model || self.label.is_some()
    }

    /// Whether a drafter must be asked before it is known to do it.
    pub(crate) fn needs_asking(self) -> bool {
        self.is_special() || self.is_tree() || self.rule.is_some()
    }

    fn is_tree(self) -> bool {
        self.width > 1
    }

    /// The refusal of special requirements where there is no drafter at all, which `reason` explains.
    pub(crate) fn without_drafters(self, reason: &str) -> BadField {
        let field = match self.drafting {
            Drafting::Model => "draft_length",
            Drafting::MaxGram | Drafting::Cascade => "drafting",
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
                    Drafting::MaxGram => "is of an older version and has no table for max-gram",
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
            return refused("draft_length", &problem);
        }
        let is_lenient = drafter.cascade.as_ref().is_some_and(|held| held.lenient);
        if self.drafting == Drafting::Cascade && self.cuts_proposals && is_lenient {
            let problem = "holds a lenient cascade, whose draft distributions cannot be cut after tokens were \
                           drawn; ask for DENSE_F32 (--proposal dense:f32), or for verification COUPLED";
            return refused("proposal_form", problem);
        }
        if self.is_tree() && !drafter.trees {
            return refused("tree", "does not draft trees; ask for a chain");
        }
        let has = |feature: &str| drafter.features.iter().any(|name| name == feature);
        let is_max_gram = self.drafting == Drafting::MaxGram;
        if self.is_tree() && (self.tests_drafts || is_max_gram) && !has(TOKEN_TREES) {
            let problem = if is_max_gram {
                "has no trees of max-gram yet; ask for a chain"
            } else {
                "does not draw siblings yet; ask for a chain, or for verification COUPLED"
            };
            return refused("tree", problem);
        }
        if let Some((feature, what)) = self.rule
            && !has(feature)
        {
            let problem = format!("takes no stop rule with {what} yet; ask for a fixed length");
            return refused("draft_length", &problem);
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

/// Whether `drafter` has an acceptance head for `label`.
pub(crate) fn has_head(drafter: &v1::PeerDescription, label: AcceptanceLabel) -> bool {
    let wanted = drafting::label_to_wire(label);
    drafter.heads.iter().any(|head| head.label() == wanted)
}

#[cfg(test)]
mod tests {
    use speculation::drafting::policies::CONFIDENCE;
    use speculation::drafting::{DraftLen, StopRule};
    use speculation::methods::MethodRequest;

    use super::*;

    const MODEL: DrafterRequirements = DrafterRequirements {
        drafting: Drafting::Model,
        label: None,
        cuts_proposals: false,
        width: 1,
        tests_drafts: false,
        rule: None,
    };

    /// Checks what a drafter that changes a plain one so says to requirements: a field and words, or nothing.
    fn says(
        requirements: DrafterRequirements,
        change: fn(&mut v1::PeerDescription),
        expected: Option<(&str, &str)>,
    ) {
        let mut drafter = v1::PeerDescription {
            model: "x".to_owned(),
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
    fn a_drafter_that_says_nothing_has_a_model_and_no_more() {
        let no_table = ("drafting", "'x' is of an older version");
        says(MODEL, |_| {}, None);
        says(MAX_GRAM, |_| {}, Some(no_table));
        says(CASCADE, |_| {}, Some(("drafting", "'x' holds no cascade")));
        let of_max_gram = |drafter: &mut v1::PeerDescription| {
            drafter.draftings = vec![v1::Drafting::MaxGram.into()];
        };
        says(MAX_GRAM, of_max_gram, None);
        says(MODEL, of_max_gram, Some(("drafting", "no draft model")));
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
            "draft_length",
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
        says(cut(CASCADE), lenient, Some(("proposal_form", "lenient")));
        says(CASCADE, lenient, None);
        says(cut(MODEL), lenient, None);
        says(cut(CASCADE), strict, None);
    }

    #[test]
    fn a_tree_is_for_those_who_draft_them_and_a_level_fits_into_a_block() {
        let wide = |width| DrafterRequirements { width, ..MODEL };
        let of_trees = |drafter: &mut v1::PeerDescription| drafter.trees = true;
        says(wide(8), of_trees, None);
        says(wide(8), |_| {}, Some(("tree", "'x' does not draft trees")));
        says(wide(9), of_trees, Some(("tree", "at most 8")));
        let tested = DrafterRequirements {
            tests_drafts: true,
            ..wide(8)
        };
        let draws = |drafter: &mut v1::PeerDescription| {
            drafter.trees = true;
            drafter.features.push(TOKEN_TREES.to_owned());
        };
        says(tested, draws, None);
        says(tested, of_trees, Some(("tree", "does not draw siblings")));
        assert!(wide(8).needs_asking() && !MODEL.needs_asking());
        let of_max_gram = DrafterRequirements {
            drafting: Drafting::MaxGram,
            ..wide(8)
        };
        let before = |drafter: &mut v1::PeerDescription| {
            drafter.trees = true;
            drafter.draftings = vec![v1::Drafting::MaxGram.into()];
        };
        says(
            of_max_gram,
            before,
            Some(("tree", "no trees of max-gram yet")),
        );
    }

    #[test]
    fn rules_are_for_those_who_ask_them_so() {
        let ruled = DrafterRequirements {
            rule: Some((STOPPED_LAYERS, "verification BLOCK_GREEDY")),
            ..MODEL
        };
        let lacks = (
            "draft_length",
            "'x' takes no stop rule with verification BLOCK_GREEDY yet",
        );
        says(ruled, |_| {}, Some(lacks));
        let knows = |drafter: &mut v1::PeerDescription| {
            drafter.features = vec![STOPPED_LAYERS.to_owned()];
        };
        says(ruled, knows, None);
        assert!(ruled.needs_asking() && !ruled.is_special());
        let sure = DraftLen::Stop(StopRule::new(&CONFIDENCE, 0.5));
        let needs = |method, drafting, length| {
            let requested = MethodRequest {
                method,
                drafting: Some(drafting),
                draft_len: Some(length),
                ..Default::default()
            };
            let method = Choice::resolve(&requested, 1.0, false).expect("a method");
            let rule = DrafterRequirements::of(&method).rule;
            rule.map(|(feature, _)| feature)
        };
        let (model, max_gram) = (Drafting::Model, Drafting::MaxGram);
        for (method, drafting, length, expected) in [
            ("coupled", model, sure, None),
            ("coupled", max_gram, DraftLen::Fixed, None),
            ("coupled", max_gram, sure, Some(MAX_GRAM_SURVIVAL)),
            ("block-greedy", model, DraftLen::Fixed, None),
            ("block-greedy", model, sure, Some(STOPPED_LAYERS)),
        ] {
            assert_eq!(
                needs(method, drafting, length),
                expected,
                "{method} {length:?}"
            );
        }
    }
}
