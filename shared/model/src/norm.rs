//! Root mean square normalisation (Zhang and Sennrich 2019, equation 4).

use speculation::simd::{Kernel, Level};

/// Partial sums: input `i` goes to sum `i % 16`.
const LANES: usize = 16;

/// `y = x / sqrt(mean(x^2) + eps) * weight`.
#[derive(Clone, Debug)]
pub(crate) struct RmsNorm {
    weight: Vec<f32>,
    eps: f32,
}

impl RmsNorm {
    /// `weight` is `(hidden)`.
    pub(crate) fn new(weight: Vec<f32>, eps: f32) -> Self {
        Self { weight, eps }
    }

    /// A norm that multiplies by 1 + `weight`, `(hidden)`, as Gemma's do.
    pub(crate) fn plus_one(mut weight: Vec<f32>, eps: f32) -> Self {
        for weight in &mut weight {
            *weight += 1.0;
        }
        Self::new(weight, eps)
    }

    /// Normalises each row of `x`, `(rows, hidden)`, into `y`, of the same shape.
    pub(crate) fn forward(&self, level: Level, x: &[f32], y: &mut [f32]) {
        let (norm, from) = (self, Some(x));
        level.run(NormRows { norm, from, x: y });
    }

    /// Normalises each row of `x`, `(rows, hidden)`, where it stands.
    pub(crate) fn forward_in_place(&self, level: Level, x: &mut [f32]) {
        let (norm, from) = (self, None);
        level.run(NormRows { norm, from, x });
    }

    /// Returns what a row's numbers are multiplied by, beside the weights.
    #[inline(always)]
    fn inverse(&self, x: &[f32]) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let (chunks, rest) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                sums[lane] += chunk[lane] * chunk[lane];
            }
        }
        for (sum, x) in sums.iter_mut().zip(rest) {
            *sum += x * x;
        }
        let mean = sum_lanes(sums) / x.len() as f32;
        1.0 / (mean + self.eps).sqrt()
    }
}

/// Normalises rows where they stand, or where `from` is copied to.
struct NormRows<'a> {
    norm: &'a RmsNorm,
    from: Option<&'a [f32]>,
    x: &'a mut [f32],
}

impl Kernel for NormRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let weight = &self.norm.weight;
        for (index, row) in self.x.chunks_exact_mut(weight.len()).enumerate() {
            if let Some(from) = self.from {
                row.copy_from_slice(&from[index * weight.len()..][..weight.len()]);
            }
            let inverse = self.norm.inverse(row);
            for (x, weight) in row.iter_mut().zip(weight) {
                *x = weight * (*x * inverse);
            }
        }
    }
}

/// Adds sixteen partial sums in a fixed tree.
#[inline(always)]
pub(crate) fn sum_lanes(sums: [f32; LANES]) -> f32 {
    fold_lanes(sums, |a, b| a + b)
}

/// Folds sixteen numbers into one by `together`, in a fixed tree: halves onto halves.
#[inline(always)]
pub(crate) fn fold_lanes(mut lanes: [f32; LANES], together: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = together(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_unit_mean_square_times_weight() {
        let norm = RmsNorm::new(vec![2.0; 20], 0.0);
        let x: Vec<f32> = (0..40).map(|i| (i % 7) as f32 - 2.5).collect();
        let mut y = vec![0.0; 40];
        norm.forward(Level::detect(), &x, &mut y);
        for (x, y) in x.chunks(20).zip(y.chunks(20)) {
            let mean = y.iter().map(|y| y * y).sum::<f32>() / 20.0;
            assert!((mean - 4.0).abs() < 1e-5, "{mean}");
            assert!((y[3] / x[3] - y[11] / x[11]).abs() < 1e-6);
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let norm = RmsNorm::new((0..100).map(|i| 1.0 + i as f32 * 0.01).collect(), 1e-5);
        let x: Vec<f32> = (0..100).map(|i| (i as f32 * 0.7).sin()).collect();
        let rows: Vec<Vec<f32>> = Level::all()
            .into_iter()
            .map(|level| {
                let mut y = vec![0.0; 100];
                norm.forward(level, &x, &mut y);
                y
            })
            .collect();
        assert!(rows.iter().all(|row| *row == rows[0]));
        for level in Level::all() {
            let mut in_place = x.clone();
            norm.forward_in_place(level, &mut in_place);
            assert_eq!(in_place, rows[0], "{level:?}");
        }
    }

    #[test]
    fn weights_may_count_from_one() {
        let x = [3.0, -4.0, 1.0, 0.5];
        let forward = |norm: &RmsNorm| {
            let mut y = x;
            norm.forward_in_place(Level::detect(), &mut y);
            y
        };
        let plain = RmsNorm::new(vec![1.5, 1.0, 0.75, 2.0], 1e-6);
        let plus_one = RmsNorm::plus_one(vec![0.5, 0.0, -0.25, 1.0], 1e-6);
        assert_eq!(forward(&plus_one), forward(&plain));
    }
}
