//! The gated activation of the feed-forward network (Shazeer 2020, SwiGLU).

use speculation::simd::Kernel;

use speculation::exp::exp;

/// x / (1 + e^-x) (SiLU).
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `output = silu(gate) * up` for one row.
pub(crate) struct GatedSilu<'a> {
    /// Gate, then up, `(2, intermediate)`.
    pub(crate) gate_up: &'a [f32],
    /// The result, `(intermediate)`.
    pub(crate) output: &'a mut [f32],
}

impl Kernel for GatedSilu<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (gate, up) = self.gate_up.split_at(self.output.len());
        for ((output, gate), up) in self.output.iter_mut().zip(gate).zip(up) {
            *output = silu(*gate) * up;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speculation::simd::Level;

    #[test]
    fn every_level_gives_the_bits_of_the_formula() {
        let gate: Vec<f32> = (0..1001).map(|i| (i - 500) as f32 * 0.231).collect();
        let up: Vec<f32> = (0..1001).map(|i| 1.0 - i as f32 * 0.01).collect();
        let expected: Vec<f32> = gate.iter().zip(&up).map(|(&g, u)| silu(g) * u).collect();
        for level in Level::all() {
            let mut output = vec![0.0; 1001];
            level.run(GatedSilu {
                gate_up: &[gate.as_slice(), &up].concat(),
                output: &mut output,
            });
            assert_eq!(output, expected, "{level:?}");
        }
        assert_eq!(silu(0.0), 0.0);
        assert!((silu(1.0) - 0.731_058_6).abs() < 1e-6);
        assert!(silu(-1000.0).abs() < 1e-30);
    }
}
