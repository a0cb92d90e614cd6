use super::*;

const MODEL: DrafterRequirements = DrafterRequirements {
    drafting: Drafting::Model,
    ahead: false,
    label: None,
    cascade: None,
    cuts_proposals: false,
    takes_any: true,
    width: 1,
};

/// Checks what a drafter that changes one of a model alone so says to requirements: a field and words, or nothing.
fn drafter_says(
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
    drafter_says(MODEL, |_| {}, None);
    drafter_says(
        MAX_GRAM,
        |_| {},
        Some(("settings.drafting", "'x' offers no max-gram")),
    );
    drafter_says(
        CASCADE,
        |_| {},
        Some(("settings.drafting", "'x' holds no cascade")),
    );
    let of_max_gram = |drafter: &mut v1::PeerDescription| {
        drafter.draftings = vec![v1::Drafting::MaxGram.into()];
    };
    drafter_says(MAX_GRAM, of_max_gram, None);
    drafter_says(
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
    drafter_says(of_label(AcceptanceLabel::Rejection), holds_rejection, None);
    drafter_says(
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
    drafter_says(
        cut(CASCADE),
        lenient,
        Some(("settings.proposal", "lenient")),
    );
    drafter_says(CASCADE, lenient, None);
    drafter_says(cut(MODEL), lenient, None);
    drafter_says(cut(CASCADE), strict, None);
}

#[test]
fn settings_of_a_cascade_are_for_as_many_drafts_as_it_has() {
    fn of_two(drafter: &mut v1::PeerDescription) {
        drafter.draftings = vec![v1::Drafting::Cascade.into()];
        drafter.features = vec![CASCADE_SETTINGS.to_owned()];
        drafter.cascade = Some(v1::DraftCascade {
            models: vec!["a".to_owned(), "max-gram".to_owned()],
            lenient: true,
        });
    }
    fn of_before(drafter: &mut v1::PeerDescription) {
        of_two(drafter);
        drafter.features.clear();
    }
    let with = |drafts, is_lenient| DrafterRequirements {
        cascade: Some(CascadeRequirements { drafts, is_lenient }),
        cuts_proposals: true,
        ..CASCADE
    };
    drafter_says(with(Some(2), Some(false)), of_two, None);
    let lenient = Some(("settings.proposal", "lenient"));
    drafter_says(with(Some(2), None), of_two, lenient);
    let other_size = "2 drafts (a, max-gram), and the matrix is for 3";
    let field = "settings.cascade_k";
    drafter_says(
        with(Some(3), Some(false)),
        of_two,
        Some((field, other_size)),
    );
    let old = "takes no settings of its cascade";
    drafter_says(with(None, Some(false)), of_before, Some((field, old)));
}

#[test]
fn a_level_of_a_tree_fits_into_a_block() {
    let wide = |width| DrafterRequirements { width, ..MODEL };
    drafter_says(wide(8), |_| {}, None);
    drafter_says(wide(9), |_| {}, Some(("settings.tree", "at most 8")));
    assert!(wide(8).needs_asking() && !MODEL.needs_asking());
}

#[test]
fn a_drafter_of_another_vocabulary_has_no_probabilities() {
    let translated = |drafter: &mut v1::PeerDescription| {
        drafter.features = vec![TRANSLATED.to_owned()];
    };
    let tests = DrafterRequirements {
        takes_any: false,
        ..MODEL
    };
    let tree = DrafterRequirements { width: 2, ..MODEL };
    drafter_says(MODEL, translated, None);
    drafter_says(tests, translated, Some(("method", "another vocabulary")));
    drafter_says(tree, translated, Some(("settings.tree", "chains only")));
    drafter_says(tests, |_| {}, None);
    drafter_says(tree, |_| {}, None);
}

#[test]
fn whoever_drafts_ahead_says_so() {
    let ahead = DrafterRequirements {
        ahead: true,
        ..MODEL
    };
    let old = Some(("settings.schedule", "does not draft ahead"));
    drafter_says(ahead, |_| {}, old);
    drafter_says(ahead, |it| it.features.push("ahead".to_owned()), None);
    assert!(ahead.is_special() && ahead.needs_asking());
    let refused = ahead.without_drafters("and there is none");
    assert_eq!(refused.field, "settings.schedule");
}

const PLAIN: VerifierRequirements = VerifierRequirements {
    verification: Some(1),
    name: "v",
    has_tree: false,
    tests_drafts: false,
    stops_layers: false,
    whole_rows: None,
};

/// Checks what is said of a verifier with these features, which verifies trees: a field and words, or nothing.
fn verifier_says(
    required: VerifierRequirements,
    features: &[&str],
    expected: Option<(&str, &str)>,
) {
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
    verifier_says(PLAIN, &[], None);
    let other = VerifierRequirements {
        verification: Some(2),
        ..PLAIN
    };
    verifier_says(
        other,
        &[],
        Some(("settings.verification", "'x' has no verification 'v' yet")),
    );
    let tree = VerifierRequirements {
        has_tree: true,
        ..PLAIN
    };
    verifier_says(tree, &[], None);
    let tested = VerifierRequirements {
        tests_drafts: true,
        ..tree
    };
    verifier_says(
        tested,
        &[STOPPED_LAYERS],
        Some(("settings.tree", "trees by rejection yet")),
    );
    verifier_says(tested, &[TOKEN_TREES], None);
    let stopped = VerifierRequirements {
        stops_layers: true,
        ..PLAIN
    };
    verifier_says(
        stopped,
        &[TOKEN_TREES],
        Some(("settings.draft_len", "no stop rule with verification 'v'")),
    );
    verifier_says(stopped, &[STOPPED_LAYERS], None);
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
    verifier_says(whole, &[], None);
    let of_chains = v1::PeerDescription {
        verifications: vec![1],
        ..Default::default()
    };
    let bad = tree.check(&of_chains).expect_err("of chains");
    assert_eq!(bad.field, "settings.tree");
}
