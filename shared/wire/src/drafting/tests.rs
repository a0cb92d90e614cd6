use super::*;
use speculation::drafting::policies::{CONFIDENCE, ENTROPY, LEARNED};

#[test]
fn ways_of_drafting_survive_the_wire() {
    for drafting in [Drafting::Model, Drafting::MaxGram, Drafting::Cascade] {
        assert_eq!(from_wire(to_wire(drafting).into()), Ok(Some(drafting)));
    }
    assert_eq!(from_wire(0), Ok(None));
    assert_eq!(from_wire(9).expect_err("unknown").field, "drafting");
}

#[test]
fn stop_rules_survive_the_wire() {
    let learned = StopRule::new(&LEARNED, 0.7).with_least(3);
    let flat = StopRule::new(&ENTROPY, 0.0);
    for rule in [StopRule::new(&CONFIDENCE, 1.0), flat, learned] {
        assert_eq!(
            rule_from_wire(rule_to_wire(rule).as_ref(), 9),
            Ok((rule, 9))
        );
    }
    assert_eq!(rule_to_wire(StopRule::NEVER), None);
    assert_eq!(rule_from_wire(None, 9), Ok((StopRule::NEVER, 9)));
    let empty = v1::DraftLength::default();
    assert_eq!(rule_from_wire(Some(&empty), 9), Ok((StopRule::NEVER, 9)));
}

/// Every policy has its name, also those that have fields of their own.
#[test]
fn a_policy_is_read_by_its_name() {
    for policy in POLICIES {
        let wire = v1::DraftLength {
            policy: Some(Policy::Named(v1::NamedStop {
                name: policy.name.to_owned(),
                threshold: 0.5,
                min_tokens: 2,
            })),
        };
        let rule = StopRule::new(policy, 0.5).with_least(2);
        assert_eq!(rule_from_wire(Some(&wire), 9), Ok((rule, 9)));
    }
}

#[test]
fn a_fixed_length_never_lengthens_a_round() {
    let fixed = |tokens| {
        let policy = Some(Policy::Fixed(tokens));
        Some(v1::DraftLength { policy })
    };
    assert_eq!(
        rule_from_wire(fixed(4).as_ref(), 9),
        Ok((StopRule::NEVER, 4))
    );
    assert_eq!(
        rule_from_wire(fixed(14).as_ref(), 9),
        Ok((StopRule::NEVER, 9))
    );
}

#[test]
fn thresholds_out_of_range_are_named() {
    let learned = |threshold| {
        Policy::Learned(v1::LearnedStop {
            threshold,
            min_tokens: 0,
        })
    };
    let named = |name: &str, threshold| {
        Policy::Named(v1::NamedStop {
            name: name.to_owned(),
            threshold,
            min_tokens: 0,
        })
    };
    for (field, policy) in [
        ("draft_length.fixed", Policy::Fixed(0)),
        ("draft_length.confidence", Policy::Confidence(1.01)),
        ("draft_length.confidence", Policy::Confidence(f64::NAN)),
        ("draft_length.entropy", Policy::Entropy(-0.1)),
        ("draft_length.entropy", Policy::Entropy(f64::INFINITY)),
        ("draft_length.learned.threshold", learned(-0.1)),
        ("draft_length.learned.threshold", learned(f64::NAN)),
        ("draft_length.named.name", named("fixed", 1.0)),
        ("draft_length.named.threshold", named("confidence", 1.01)),
        ("draft_length.named.threshold", named("specdec++", f64::NAN)),
    ] {
        let wire = Some(v1::DraftLength {
            policy: Some(policy),
        });
        assert_eq!(
            rule_from_wire(wire.as_ref(), 4).expect_err(field).field,
            field
        );
    }
}

#[test]
fn shapes_survive_the_wire_within_their_ranges() {
    for shape in [
        TreeShape::Chain,
        TreeShape::Comb(2),
        TreeShape::Comb(64),
        TreeShape::Alternates(1),
        TreeShape::Alternates(16),
    ] {
        assert_eq!(shape_from_wire(shape_to_wire(shape)), Ok(shape));
    }
    for (field, shape) in [
        ("tree.comb", Some(Shape::Comb(1))),
        ("tree.comb", Some(Shape::Comb(65))),
        ("tree.alternates", Some(Shape::Alternates(0))),
        ("tree.alternates", Some(Shape::Alternates(17))),
        ("tree", None),
    ] {
        let wire = Some(v1::TreeShape { shape });
        assert_eq!(shape_from_wire(wire).expect_err(field).field, field);
    }
}

#[test]
fn blocks_survive_the_wire() {
    let parents = vec![None, None, Some(0), Some(1), Some(1)];
    let tree = DraftTree::new(vec![4, 5, 4, 4, 6], parents).expect("a tree");
    let wire = tree_to_wire(&tree);
    assert_eq!(wire.parents, [-1, -1, 0, 1, 1]);
    assert_eq!(tree_from_wire(Some(wire), 5, 7), Ok(tree));
    let chain = DraftTree::from(vec![4, 4]);
    let wire = tree_to_wire(&chain);
    assert_eq!(tree_from_wire(Some(wire), 2, 5), Ok(chain.clone()));
    let spelled = v1::TokenTree {
        token_ids: vec![4, 4],
        parents: vec![-1, 0],
    };
    assert_eq!(tree_from_wire(Some(spelled), 2, 5), Ok(chain));
    assert_eq!(tree_from_wire(None, 2, 5), Ok(DraftTree::default()));
}

#[test]
fn what_is_no_block_is_named() {
    for (field, token_ids, parents) in [
        ("drafts", vec![1, 2, 3, 4], vec![]),
        ("drafts", vec![1, 9], vec![]),
        ("drafts.parents", vec![1, 2], vec![-1]),
        ("drafts.parents", vec![1, 2], vec![-1, -2]),
        ("drafts.parents", vec![1, 2], vec![-1, 1]),
        ("drafts.parents", vec![1, 2, 2], vec![-1, 0, 0]),
        ("drafts.parents", vec![], vec![-1]),
    ] {
        let wire = v1::TokenTree { token_ids, parents };
        let error = tree_from_wire(Some(wire.clone()), 3, 9).expect_err(field);
        assert_eq!(error.field, field, "{wire:?}");
    }
}
