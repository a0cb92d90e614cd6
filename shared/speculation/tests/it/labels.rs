//! What acceptance heads learn is what verification does, and what evaluators expect of it.

use outrider_tests::acceptance::{
    coupled, coupled_given, first_refusal, label_probability, length_distribution, longest_pass,
};
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::noise::Noise;
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
            (Verification::COUPLED, coupled(&q, &pi)),
        ] {
            let label = verification.label.expect("a label");
            let mean: f64 = (0..q.len())
                .map(|token| q[token] * label_probability(label, &q, &pi, token as TokenId))
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
            let coupled = label_probability(AcceptanceLabel::Coupled, &q, &pi, token);
            let rejection = label_probability(AcceptanceLabel::Rejection, &q, &pi, token);
            assert!(coupled <= rejection + 1e-15, "{q:?} {pi:?} {token}");
            strictly += u32::from(coupled < rejection - 1e-3);
            if pi[token as usize] == 0.0 {
                assert_eq!(coupled, 0.0);
            }
            let mut point = vec![0.0; q.len()];
            point[token as usize] = 1.0;
            for label in AcceptanceLabel::ALL {
                let given = label_probability(label, &point, &pi, token);
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

const DRAFT: [f64; 5] = [0.4, 0.3, 0.2, 0.1, 0.0];
const TARGET: [f64; 5] = [0.15, 0.35, 0.2, 0.05, 0.25];

fn acceptance_by_definition(q: &[f64], pi: &[f64]) -> f64 {
    let shared = (0..q.len()).filter(|&j| q[j] > 0.0 && pi[j] > 0.0);
    let larger = |i: usize, j: usize| (pi[i] / pi[j]).max(q[i] / q[j]);
    let all = |j: usize| (0..q.len()).map(|i| larger(i, j)).sum::<f64>();
    shared.map(|j| 1.0 / all(j)).sum()
}

#[test]
fn acceptance_equals_its_definition() {
    let by_definition = acceptance_by_definition(&DRAFT, &TARGET);
    assert!((coupled(&DRAFT, &TARGET) - by_definition).abs() < 1e-12);
    assert!((coupled(&TARGET, &TARGET) - 1.0).abs() < 1e-12);
    assert_eq!(coupled(&[1.0, 0.0], &[0.0, 1.0]), 0.0);
}

#[test]
fn conditional_acceptance_averages_to_acceptance() {
    for (q, pi) in [(DRAFT, TARGET), (TARGET, DRAFT), (TARGET, TARGET)] {
        let given = |token: usize| coupled_given(&q, &pi, token as TokenId);
        let mean: f64 = (0..5).map(|token| q[token] * given(token)).sum();
        assert!((mean - coupled(&q, &pi)).abs() < 1e-12);
        for token in 0..5 {
            let bound = if q[token] > 0.0 {
                pi[token] / q[token]
            } else {
                1.0
            };
            assert!(given(token) <= bound.min(1.0) + 1e-15);
        }
    }
    assert_eq!(coupled_given(&DRAFT, &DRAFT, 4), 0.0);
    let point = [0.0, 1.0, 0.0, 0.0, 0.0];
    assert!((coupled_given(&point, &TARGET, 1) - TARGET[1]).abs() < 1e-15);
}

/// 400,000 seeded positions: each frequency within five standard errors, below .004.
#[test]
fn choices_follow_the_distribution_and_agree_as_often_as_the_formula_says() {
    let noise = Noise::new(0x5eed, 0);
    let draws = 400_000_u32;
    let mut counts = [0_u32; 5];
    let mut equal = 0_u32;
    for position in 0..draws {
        let chosen = choice(&TARGET, &noise, position);
        counts[chosen as usize] += 1;
        equal += u32::from(chosen == choice(&DRAFT, &noise, position));
    }
    let within = |count: u32, probability: f64| {
        let error = (probability * (1.0 - probability) / f64::from(draws)).sqrt();
        (f64::from(count) / f64::from(draws) - probability).abs() < 5.0 * error
    };
    for (token, &probability) in TARGET.iter().enumerate() {
        assert!(within(counts[token], probability), "{counts:?}");
    }
    let agree = within(equal, coupled(&DRAFT, &TARGET));
    assert!(agree, "{equal} of {draws}");
}

#[test]
fn distributions_of_the_length_follow_from_the_tests() {
    assert_eq!(first_refusal(&[0.5, 0.25]), [0.5, 0.375, 0.125]);
    assert_eq!(longest_pass(&[0.5, 0.25]), [0.375, 0.375, 0.25]);
    assert_eq!(first_refusal(&[]), [1.0]);
    assert_eq!(longest_pass(&[]), [1.0]);
}
