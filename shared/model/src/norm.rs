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

    /// Normalises each row of `x`, `(rows, hidden)`, into `y`, of the same shape.
    pub(crate) fn forward(&self, level: Level, x: &[f32], y: &mut [f32]) {
        let hidden = self.weight.len();
        for (x, y) in x.chunks_exact(hidden).zip(y.chunks_exact_mut(hidden)) {
            level.run(Row { norm: self, x, y });
        }
    }
}

struct Row<'a> {
    norm: &'a RmsNorm,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut sums = [0.0_f32; LANES];
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                sums[lane] += chunk[lane] * chunk[lane];
            }
        }
        for (sum, x) in sums.iter_mut().zip(rest) {
            *sum += x * x;
        }
        let mean = sum_lanes(sums) / self.x.len() as f32;
        let inverse = 1.0 / (mean + self.norm.eps).sqrt();
        for ((y, x), weight) in self.y.iter_mut().zip(self.x).zip(&self.norm.weight) {
            *y = weight * (x * inverse);
        }
    }
}

/// Adds sixteen partial sums in a fixed tree: halves onto halves.
#[inline(always)]
pub(crate) fn sum_lanes(mut sums: [f32; LANES]) -> f32 {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
    }
    sums[0]
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
    }
}
