//! What the target distributions are, held against their definitions on small random distributions.

mod kl_budget;
mod lossy;
mod positions;
mod rules;
mod scale;

/// Asserts that two rows are equal up to rounding.
fn assert_close(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() < 1e-12, "{what}: {got:?} is not {expected:?}");
    }
}

/// TV(p, q), as half the distance.
fn total_variation(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0
}

/// `Σ min(q, π)`: how often token verification accepts.
fn acceptance(q: &[f64], pi: &[f64]) -> f64 {
    q.iter().zip(pi).map(|(q, pi)| q.min(*pi)).sum()
}
