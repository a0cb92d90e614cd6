//! A paired test, and what counts as a difference.

/// Differences at least so likely by chance alone show nothing.
pub(super) const SIGNIFICANT: f64 = 0.05;

/// Returns how likely differences at least so one-sided are if neither side is larger: Wilcoxon's signed rank test, two-sided, by the
/// normal approximation with corrections for ties and continuity (Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods",
/// 2014, §3.1). Differences of 0 are left out; 1 where none is left.
pub(super) fn wilcoxon(differences: &[f64]) -> f64 {
    let mut ranked: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|it| *it != 0.0)
        .collect();
    ranked.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let count = ranked.len() as f64;
    let (mut positive, mut ties, mut at) = (0.0, 0.0, 0);
    while at < ranked.len() {
        let same = ranked[at..]
            .iter()
            .take_while(|it| it.abs() == ranked[at].abs());
        let same = same.count();
        // Ranks count from 1; equal differences share the mean of theirs.
        let rank = at as f64 + f64::midpoint(same as f64, 1.0);
        let above = ranked[at..at + same].iter().filter(|it| **it > 0.0).count();
        positive += above as f64 * rank;
        ties += (same as f64).powi(3) - same as f64;
        at += same;
    }
    let expected = count * (count + 1.0) / 4.0;
    let variance = count * (count + 1.0) * (2.0 * count + 1.0) / 24.0 - ties / 48.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((positive - expected).abs() - 0.5).max(0.0) / variance.sqrt();
    libm::erfc(z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `scipy.stats.wilcoxon(d, correction=True, method="approx")` of SciPy 1.14 gives.
    #[test]
    fn the_paired_test_is_that_of_the_references() {
        let cases: [(&[f64], f64); 3] = [
            (&SCIPY_A, 0.075_304_133_612_537_21),
            (&SCIPY_B, 0.064_223_780_739_860_4),
            (&[0.0, 0.0], 1.0),
        ];
        for (differences, expected) in cases {
            let found = wilcoxon(differences);
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }

    const SCIPY_A: [f64; 10] = [1.2, -0.4, 2.5, 0.3, 0.3, 1.9, -0.7, 3.1, 0.0, 2.2];
    const SCIPY_B: [f64; 12] = [
        5.0, 5.0, -5.0, 1.0, 2.0, -2.0, 3.0, 3.0, 3.0, -1.0, 4.0, 6.0,
    ];
}
