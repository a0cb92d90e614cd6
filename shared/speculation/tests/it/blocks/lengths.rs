//! How many tokens a block is accepted for.

use outrider_tests::acceptance::length_distribution;
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::noise::Noise;
use speculation::verification::Verification;

use super::{VERIFICATIONS, WHOLE, block_of, seeded, setup};
use crate::tree::chain::Chain;
use crate::tree::{Distributions, Setup, enumerate, pairs};

/// Calls `visit` with every block of `length` tokens and its probability under q, π and, joint,
/// what token and block verification keep of q.
fn blocks(
    draft: &Distributions,
    target: &Distributions,
    length: usize,
    visit: &mut impl FnMut(&[TokenId], Kept),
) {
    fn extend(
        (draft, target): (&Distributions, &Distributions),
        block: &mut Vec<TokenId>,
        kept: Kept,
        left: usize,
        visit: &mut impl FnMut(&[TokenId], Kept),
    ) {
        if left == 0 {
            return visit(block, kept);
        }
        let (q, pi) = (draft.after(block), target.after(block));
        for token in 0..q.len() {
            if q[token] > 0.0 {
                block.push(token as TokenId);
                let longer = Kept {
                    drafted: kept.drafted * q[token],
                    wanted: kept.wanted * pi[token],
                    one_by_one: kept.one_by_one * (pi[token] / q[token]).min(1.0),
                    clipped: (kept.clipped * pi[token] / q[token]).min(1.0),
                };
                extend((draft, target), block, longer, left - 1, visit);
                block.pop();
            }
        }
    }
    let none = Kept {
        drafted: 1.0,
        wanted: 1.0,
        one_by_one: 1.0,
        clipped: 1.0,
    };
    extend((draft, target), &mut Vec::new(), none, length, visit);
}

#[derive(Clone, Copy)]
struct Kept {
    /// Π q.
    drafted: f64,
    /// Π π.
    wanted: f64,
    /// Π min(1, π/q).
    one_by_one: f64,
    /// The product of π/q, clipped to 1 at every token.
    clipped: f64,
}

/// E[accepted] by the formulas: token verification's Theorem 2, block verification's sum of clipped
/// products, and greedy block verification's Theorem 1, `Σ_x min(q(x^i), π(x^i))`, the most there is.
fn expected_accepted(draft: &Distributions, target: &Distributions, length: usize) -> [f64; 3] {
    let mut expected = [0.0; 3];
    for length in 1..=length {
        blocks(draft, target, length, &mut |_, kept| {
            expected[0] += kept.drafted * kept.one_by_one;
            expected[1] += kept.drafted * kept.clipped;
            expected[2] += kept.drafted.min(kept.wanted);
        });
    }
    expected
}

#[test]
fn expected_accepted_lengths_equal_their_formulas_and_are_ordered() {
    let mut gained = [0, 0];
    for (vocab, length) in [(2, 3), (3, 2), (2, 4), (5, 1)] {
        for pair in pairs(0..4, vocab) {
            let formulas = expected_accepted(&pair.draft.reported(WHOLE), &pair.target, length);
            for (verification, formula) in VERIFICATIONS.into_iter().zip(formulas) {
                let setup = setup(&pair, verification, |_| 4);
                let setup = Setup {
                    length: [|_| 1, |_| 2, |_| 3, setup.length][length - 1],
                    ..setup
                };
                let mut expected = 0.0;
                enumerate(|branch| {
                    let verdict = setup.round(&[], &[], branch);
                    expected += branch.weight() * verdict.accepted() as f64;
                });
                let off = (expected - formula).abs();
                assert!(
                    off < 1e-12,
                    "{verification:?} {}: off by {off:e}",
                    pair.name
                );
            }
            let [token, block, greedy] = formulas;
            assert!(token <= block + 1e-12 && block <= greedy + 1e-12);
            gained[0] += u32::from(block > token + 1e-6);
            gained[1] += u32::from(greedy > block + 1e-6);
        }
    }
    assert!(gained.iter().all(|&pairs| pairs > 10), "{gained:?}");
}

/// Sun et al., the example of two tokens: q = (2/3, 1/3), π = (1/3, 2/3), two drafts.
#[test]
fn the_papers_example_has_its_lengths() {
    let probs = |first: f64| vec![vec![first / 3.0, 1.0 - first / 3.0]; 3];
    for (verification, ninths) in VERIFICATIONS.into_iter().zip([10.0, 11.0, 12.0]) {
        let mut expected = 0.0;
        for drafts in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let probability: f64 = drafts
                .iter()
                .map(|&t| [2.0, 1.0][t as usize] / 3.0)
                .product();
            let lengths = length_distribution(
                verification,
                &drafts,
                &mut Chain::new(probs(1.0), probs(2.0)),
            );
            let lengths: Vec<f64> = lengths.expect("distributions");
            expected += probability * (lengths[1] + 2.0 * lengths[2]);
        }
        assert!(
            (expected - ninths / 9.0).abs() < 1e-12,
            "{verification:?} {expected}"
        );
    }
}

fn rows(distributions: &Distributions, block: &[TokenId]) -> Vec<Vec<f64>> {
    (0..=block.len())
        .map(|at| distributions.after(&block[..at]))
        .collect()
}

#[test]
fn the_distribution_of_the_length_is_what_rounds_accept() {
    for pair in pairs(20..24, 3) {
        let reported = pair.draft.reported(WHOLE);
        for verification in VERIFICATIONS {
            let mut probs = [0.0; 3];
            blocks(&reported, &pair.target, 2, &mut |block, kept| {
                let mut chain = Chain::new(rows(&pair.target, block), rows(&reported, block));
                let lengths =
                    length_distribution(verification, block, &mut chain).expect("distributions");
                for (mass, length) in probs.iter_mut().zip(lengths) {
                    *mass += kept.drafted * length;
                }
            });
            enumerate(|branch| {
                let verdict = setup(&pair, verification, |_| 2).round(&[], &[], branch);
                probs[verdict.accepted()] -= branch.weight();
            });
            assert!(
                probs.iter().all(|off| off.abs() < 1e-12),
                "{} {probs:?}",
                pair.name
            );
        }
    }
}

/// 100,000 seeded blocks: each frequency within five standard errors, below .008.
#[test]
fn coupled_lengths_follow_their_distribution() {
    let (draft, target) = (Distributions::random(3, 4), Distributions::random(5, 4));
    let mut expected = [0.0; 3];
    blocks(&draft, &target, 2, &mut |block, kept| {
        let mut chain = Chain::new(rows(&target, block), rows(&draft, block));
        let lengths =
            length_distribution(Verification::COUPLED, block, &mut chain).expect("distributions");
        for (mass, length) in expected.iter_mut().zip(lengths) {
            *mass += kept.drafted * length;
        }
    });
    let blocks = 100_000_u32;
    let mut counts = [0_u32; 3];
    for round in 0..blocks {
        let (noise, base_len) = (Noise::new(17, 0), 2 * round);
        let mut drafts = Vec::new();
        for offset in 0..2 {
            drafts.push(choice(&draft.after(&drafts), &noise, base_len + offset));
        }
        let chain = Chain::new(rows(&target, &drafts), Vec::new());
        let block = block_of(&drafts, base_len);
        let verdict = seeded(Verification::COUPLED, &block, noise, chain);
        counts[verdict.expect("distributions").accepted()] += 1;
    }
    for (count, expected) in counts.into_iter().zip(expected) {
        let off = f64::from(count) / f64::from(blocks) - expected;
        let error = (expected * (1.0 - expected) / f64::from(blocks)).sqrt();
        assert!(off.abs() < 5.0 * error, "{counts:?} {expected}");
    }
}
