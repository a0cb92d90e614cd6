//! Token verification of draft trees, proved exact by enumeration: each draw of the drafter and each test of the
//! verifier is taken every way.

mod setup;

use crate::tree::{Pair, enumerate, pairs};
use setup::{NodeSource, Setup};
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::draft_tree::DraftTree;
use speculation::drafting::TreeShape;
use speculation::noise::{InnerCall, Noise};
use speculation::proposal::{BadProposal, ProposalForm, ProposalProbs};
use speculation::verification::LastToken;

const WHOLE: NodeSource = NodeSource::Drawn(ProposalForm::Sparse { top: 8 });

fn setup(pair: &Pair, source: NodeSource, shape: TreeShape, levels: u32) -> Setup<'_> {
    Setup {
        pair,
        source,
        shape,
        levels,
        stops: |_| false,
        ends: &[],
    }
}

#[test]
fn trees_of_drawn_siblings_emit_the_target_distribution() {
    let cases = [
        (2, TreeShape::Comb(2), 1, 3),
        (2, TreeShape::Comb(2), 3, 5),
        (3, TreeShape::Comb(2), 2, 4),
        (3, TreeShape::Alternates(2), 2, 3),
        (4, TreeShape::Comb(3), 1, 3),
        (4, TreeShape::Comb(2), 2, 3),
        (5, TreeShape::Alternates(2), 1, 2),
        (5, TreeShape::Comb(5), 1, 2),
    ];
    for (vocab, shape, levels, len) in cases {
        for pair in pairs(0..3, vocab) {
            setup(&pair, WHOLE, shape, levels).assert_exact(len);
        }
    }
}

#[test]
fn siblings_are_drawn_from_the_distribution_as_it_is_sent() {
    for form in [
        ProposalForm::Sparse { top: 1 },
        ProposalForm::Sparse { top: 2 },
        ProposalForm::Dense { half: false },
        ProposalForm::Dense { half: true },
    ] {
        for pair in pairs(30..33, 3) {
            setup(&pair, NodeSource::Drawn(form), TreeShape::Comb(3), 2).assert_exact(3);
        }
    }
}

/// As Max-Gram proposes them, and every drafter at temperature 0.
#[test]
fn points_beside_one_another_emit_the_target_distribution() {
    for (vocab, shape, levels, len) in [
        (2, TreeShape::Comb(2), 3, 6),
        (3, TreeShape::Alternates(1), 3, 5),
        (4, TreeShape::Comb(3), 2, 4),
        (5, TreeShape::Comb(5), 2, 3),
    ] {
        for pair in pairs(40..44, vocab) {
            setup(&pair, NodeSource::Points, shape, levels).assert_exact(len);
        }
    }
}

/// How deep a tree is may depend on the output so far, and on the tokens drafted: a learnt rule looks at them.
#[test]
fn trees_of_any_depth_that_end_anywhere_emit_the_target_distribution() {
    let rules: [fn(&[TokenId]) -> bool; 3] = [
        |context| context.len() % 3 == 2,
        |context| context.iter().sum::<u32>() % 3 == 1,
        |context| context.last() == Some(&1),
    ];
    for stops in rules {
        for pair in pairs(50..53, 3) {
            for source in [WHOLE, NodeSource::Points] {
                let setup = Setup {
                    stops,
                    ends: &[2],
                    ..setup(&pair, source, TreeShape::Comb(2), 3)
                };
                setup.assert_exact(4);
            }
        }
    }
}

/// With the same draws a tree accepts at least what its lead path does as a chain; at one level of k siblings, all of
/// what is worth it.
#[test]
fn siblings_only_add_to_what_is_accepted() {
    let mut gained = 0;
    for pair in pairs(60..66, 4) {
        let accepted = [1, 2, 3, 4].map(|width| {
            let shape = match width {
                1 => TreeShape::Chain,
                more => TreeShape::Comb(more),
            };
            let mut expected = 0.0;
            enumerate(|branch| {
                let (_, verdict) = setup(&pair, WHOLE, shape, 1).round(&[], branch);
                expected += branch.weight() * verdict.accepted() as f64;
            });
            expected
        });
        let (q, p) = (pair.draft.after(&[]), pair.target.after(&[]));
        let q = setup::sent(q, WHOLE);
        let kept: f64 = q.iter().zip(&p).map(|(q, p)| q.min(*p)).sum();
        assert!((accepted[0] - kept).abs() < 1e-12, "{}", pair.name);
        assert!(
            accepted.is_sorted_by(|a, b| *a <= b + 1e-12),
            "{accepted:?}"
        );
        gained += u32::from(accepted[2] > accepted[0] + 0.05);
    }
    assert!(gained > 10, "{gained}");
}

#[test]
fn equal_models_accept_the_lead_path() {
    for pair in pairs(70..73, 3) {
        let equal = Pair {
            target: pair.draft.reported(ProposalForm::Sparse { top: 8 }),
            draft: pair.draft,
            name: pair.name,
        };
        enumerate(|branch| {
            let (drafts, verdict) = setup(&equal, WHOLE, TreeShape::Comb(3), 2).round(&[], branch);
            assert_eq!((verdict.accepted(), verdict.last), (2, LastToken::Bonus));
            assert_eq!(verdict.path[0], 0);
            assert_eq!(drafts.parent(verdict.path[1] as usize), Some(0));
        });
    }
}

/// What was drafted and decided is a function of the seed: a round that is sent again comes out the same.
#[test]
fn a_round_is_repeated_by_its_seed() {
    let (mut verdicts, mut siblings) = (Vec::new(), 0);
    for pair in pairs(80..82, 5) {
        for base_len in 0..40 {
            let prefix = vec![1; base_len];
            let run = || {
                let mut chance =
                    RoundChance::new(Noise::new(9, 0), base_len as u32, InnerCall::default());
                setup(&pair, WHOLE, TreeShape::Comb(3), 3).round(&prefix, &mut chance)
            };
            let (drafts, verdict) = run();
            assert_eq!(run(), (drafts.clone(), verdict.clone()));
            siblings += verdict.path.iter().filter(|&&node| node % 3 != 0).count();
            verdicts.push((drafts, verdict));
        }
    }
    assert!(siblings > 20, "{siblings} siblings were accepted");
    verdicts.dedup();
    assert!(verdicts.len() > 500);
}

#[test]
fn what_cannot_have_been_drawn_is_the_drafters_fault() {
    let tree = DraftTree::new(vec![0, 1], vec![None, None]).expect("a tree");
    let decide = |proposal: ProposalProbs| {
        let mut chance = RoundChance::new(Noise::new(1, 0), 0, InnerCall::default());
        setup::decide(
            &tree,
            &[],
            vec![vec![0.0, 0.0, 1.0]; 3],
            &[proposal],
            &mut chance,
        )
    };
    let sparse = |ids: &[u32]| ProposalProbs::Sparse {
        ids: ids.to_vec(),
        weights: vec![1; ids.len()],
    };
    assert_eq!(decide(ProposalProbs::None), Err(BadProposal::Missing));
    assert_eq!(
        decide(sparse(&[1, 2])),
        Err(BadProposal::TokenWithoutMass(0))
    );
    assert_eq!(
        decide(sparse(&[0, 2])),
        Err(BadProposal::TokenWithoutMass(1))
    );
    assert_eq!(decide(sparse(&[0])), Err(BadProposal::TokenWithoutMass(1)));
    let verdict = decide(sparse(&[0, 1])).expect("a verdict");
    assert_eq!(
        (verdict.emitted, verdict.last),
        (vec![2], LastToken::Recovered)
    );
}
