//! What acceptance heads learn is what verification does.

use speculation::TokenId;
use speculation::coupled::acceptance;
use speculation::verification::expected::length_distribution;
use speculation::verification::{AcceptanceLabel, Verification};

use crate::tree::chain::Chain;

/// Pairs of distributions, with tokens that only one side has.
fn pairs() -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut state = 11_u64;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let mut probs = |vocab: usize| {
        let mut probs: Vec<f64> = (0..vocab).map(|_| (next() * 1.4 - 0.4).max(0.0)).collect();
        probs[0] += 0.01;
        let mass: f64 = probs.iter().sum();
        for value in &mut probs {
            *value /= mass;
        }
        probs
    };
    let sizes = (0..200).map(|case| 2 + case % 7);
    sizes.map(|vocab| (probs(vocab), probs(vocab))).collect()
}

/// P(a block of one token drawn from q is accepted), by the shipped verification.
fn accepted(verification: Verification, q: &[f64], pi: &[f64]) -> f64 {
    let drawn = (0..q.len()).filter(|&token| q[token] > 0.0);
    let given = drawn.map(|token| {
        let mut distributions = Chain::new(vec![pi.to_vec(), pi.to_vec()], vec![q.to_vec()]);
        let probs = length_distribution(verification, &[token as TokenId], &mut distributions)
            .expect("a distribution");
        q[token] * probs[1]
    });
    given.sum()
}

#[test]
fn labels_average_to_the_probability_of_acceptance() {
    for (q, pi) in pairs() {
        let distance: f64 = q.iter().zip(&pi).map(|(q, pi)| (pi - q).max(0.0)).sum();
        for (verification, closed) in [
            (Verification::TOKEN, 1.0 - distance),
            (Verification::BLOCK, 1.0 - distance),
            (Verification::BLOCK_GREEDY, 1.0 - distance),
            (Verification::COUPLED, acceptance(&q, &pi)),
        ] {
            let label = verification.label.expect("a label");
            let mean: f64 = (0..q.len())
                .map(|token| q[token] * label.probability(&q, &pi, token as TokenId))
                .sum();
            let expected = accepted(verification, &q, &pi);
            for expected in [expected, closed] {
                let error = (mean - expected).abs();
                assert!(error < 1e-12, "{label}: {mean}, {expected}");
            }
        }
    }
}

#[test]
fn coupling_never_accepts_more_than_rejection_and_a_point_only_by_the_target() {
    let mut strictly = 0;
    for (q, pi) in pairs() {
        for token in 0..q.len() as TokenId {
            let coupled = AcceptanceLabel::Coupled.probability(&q, &pi, token);
            let rejection = AcceptanceLabel::Rejection.probability(&q, &pi, token);
            assert!(coupled <= rejection + 1e-15, "{q:?} {pi:?} {token}");
            strictly += u32::from(coupled < rejection - 1e-3);
            if pi[token as usize] == 0.0 {
                assert_eq!(coupled, 0.0);
            }
            let mut point = vec![0.0; q.len()];
            point[token as usize] = 1.0;
            for label in AcceptanceLabel::ALL {
                let given = label.probability(&point, &pi, token);
                assert!((given - pi[token as usize]).abs() < 1e-12);
            }
        }
    }
    assert!(strictly > 100, "{strictly}");
    let bild = Verification::bild(1.0);
    assert_eq!(bild.label, None);
}

#[test]
fn labels_are_known_by_their_names() {
    for label in AcceptanceLabel::ALL {
        assert_eq!(label.to_string().parse(), Ok(label));
    }
    let error = "block".parse::<AcceptanceLabel>().expect_err("refused");
    let reported = "no label 'block', expected coupled or rejection";
    assert_eq!(error.to_string(), reported);
}
