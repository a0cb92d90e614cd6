//! What a verifier must be able to do for a request.

use speculation::certificate::refusal::{self, RowRefusal};
use speculation::drafting::TreeShape;
use speculation::methods::Choice;
use speculation::sampling::SamplingParams;
use wire::describe::{STOPPED_LAYERS, TOKEN_TREES};
use wire::open::needs_whole_rows;
use wire::settings::FIELD;
use wire::status::BadField;
use wire::v1;

/// What a verifier must be able to do for a request, and some cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerifierRequirements {
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
    pub(crate) fn of(method: &Choice, params: &SamplingParams) -> Self {
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
    pub(crate) fn check(self, verifier: &v1::PeerDescription) -> Result<(), BadField> {
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
mod tests {
    use super::*;

    const PLAIN: VerifierRequirements = VerifierRequirements {
        verification: Some(1),
        name: "v",
        has_tree: false,
        tests_drafts: false,
        stops_layers: false,
        whole_rows: None,
    };

    /// Checks what is said of a verifier with these features, which verifies trees: a field and words, or nothing.
    fn says(required: VerifierRequirements, features: &[&str], expected: Option<(&str, &str)>) {
        let verifier = v1::PeerDescription {
            model: "x".to_owned(),
            trees: true,
            verifications: vec![1],
            features: features.iter().map(|&name| name.to_owned()).collect(),
            ..Default::default()
        };
        match (required.check(&verifier), expected) {
            (Ok(()), None) => {}
            (Err(bad), Some((field, words))) => {
                assert!(bad.field == field && bad.problem.contains(words), "{bad}");
            }
            (found, expected) => panic!("{required:?}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn what_a_verifier_lacks_is_named() {
        says(PLAIN, &[], None);
        let other = VerifierRequirements {
            verification: Some(2),
            ..PLAIN
        };
        says(
            other,
            &[],
            Some(("settings.verification", "'x' has no verification 'v' yet")),
        );
        let tree = VerifierRequirements {
            has_tree: true,
            ..PLAIN
        };
        says(tree, &[], None);
        let tested = VerifierRequirements {
            tests_drafts: true,
            ..tree
        };
        says(
            tested,
            &[STOPPED_LAYERS],
            Some(("settings.tree", "trees by rejection yet")),
        );
        says(tested, &[TOKEN_TREES], None);
        let stopped = VerifierRequirements {
            stops_layers: true,
            ..PLAIN
        };
        says(
            stopped,
            &[TOKEN_TREES],
            Some(("settings.draft_len", "no stop rule with verification 'v'")),
        );
        says(stopped, &[STOPPED_LAYERS], None);
        let of_parts = v1::PeerDescription {
            model: "x".to_owned(),
            rows_are_parts: true,
            verifications: vec![1],
            ..Default::default()
        };
        let whole = VerifierRequirements {
            whole_rows: Some(RowRefusal::AtCoordinator),
            ..PLAIN
        };
        assert_eq!(PLAIN.check(&of_parts), Ok(()));
        let bad = whole.check(&of_parts).expect_err("parts");
        assert_eq!(bad.field, "settings.accept_at");
        says(whole, &[], None);
        let of_chains = v1::PeerDescription {
            verifications: vec![1],
            ..Default::default()
        };
        let bad = tree.check(&of_chains).expect_err("of chains");
        assert_eq!(bad.field, "settings.tree");
    }
}
