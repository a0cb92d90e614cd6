//! Functions between the matrices of a feed-forward network, the gated ones of Shazeer (2020) among them,
//! and the soft cap.

use speculation::simd::Kernel;

use speculation::exp::exp;

use crate::{
    config::Activation,
    cpu::{Cpu, SharedSlice},
};

/// sqrt(2 / pi), and the factor of the cube beside it.
const GELU: [f32; 2] = [0.797_884_6, 0.044_715];

/// x / (1 + e^-x) (SiLU).
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// x / 2 (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + e^(-2 u))
/// (Hendrycks and Gimpel 2016).
#[inline(always)]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    let [root, cube] = GELU;
    let u = root * (x + cube * (x * x * x));
    x / (1.0 + exp(-2.0 * u))
}

/// max(x, 0).
#[inline(always)]
pub(crate) fn relu(x: f32) -> f32 {
    if x > 0.0 { x } else { 0.0 }
}

/// The hyperbolic tangent, within about 1e-7.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

/// Results from which threads share an activation: less takes no longer than handing it over.
const PARALLEL: usize = 3 << 10;

/// `output = activation(gate) * up`, row by row.
pub(crate) struct Gated<'a> {
    pub(crate) activation: Activation,
    /// Gate, then up, of each row: `(rows, 2, intermediate)`.
    pub(crate) gate_up: &'a [f32],
    /// The result, `(rows, intermediate)`.
    pub(crate) output: &'a mut [f32],
    /// Length of a row of the result.
    pub(crate) intermediate: usize,
}

impl Gated<'_> {
    /// Computes all rows; of many results each thread has some.
    pub(crate) fn forward(self, cpu: &Cpu) {
        let width = self.intermediate;
        if self.output.len() < PARALLEL {
            return cpu.level.run(self);
        }
        let rows = self.output.len() / width;
        let output = SharedSlice::new(self.output);
        cpu.threads.each(rows, |row| {
            cpu.level.run(Gated {
                activation: self.activation,
                gate_up: &self.gate_up[2 * width * row..][..2 * width],
                // SAFETY: each row is one part's.
                output: unsafe { output.range(width * row, width) },
                intermediate: width,
            });
        });
    }

    #[inline(always)]
    fn with(self, activation: impl Fn(f32) -> f32) {
        let rows = self.gate_up.chunks_exact(2 * self.intermediate);
        for (gate_up, output) in rows.zip(self.output.chunks_exact_mut(self.intermediate)) {
            let (gate, up) = gate_up.split_at(self.intermediate);
            for ((output, gate), up) in output.iter_mut().zip(gate).zip(up) {
                *output = activation(*gate) * up;
            }
        }
    }
}

impl Kernel for Gated<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.activation {
            Activation::Silu => self.with(silu),
            Activation::GeluTanh => self.with(gelu_tanh),
            Activation::Relu => self.with(relu),
        }
    }
}

/// Numbers x become c tanh(x / c), between -c and c (Bello et al. 2016).
pub(crate) struct SoftCap<'a> {
    pub(crate) cap: f32,
    pub(crate) values: &'a mut [f32],
}

impl Kernel for SoftCap<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for value in self.values {
            *value = self.cap * tanh(*value / self.cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speculation::simd::Level;

    #[test]
    fn every_level_gives_the_bits_of_the_formula() {
        let gate: Vec<f32> = (0..1002).map(|i| (i - 500) as f32 * 0.231).collect();
        let up: Vec<f32> = (0..1002).map(|i| 1.0 - i as f32 * 0.01).collect();
        for (activation, formula) in [
            (Activation::Silu, silu as fn(f32) -> f32),
            (Activation::GeluTanh, gelu_tanh),
            (Activation::Relu, relu),
        ] {
            let expected: Vec<f32> = gate.iter().zip(&up).map(|(&g, u)| formula(g) * u).collect();
            let rows: Vec<f32> = (gate.chunks(501).zip(up.chunks(501)))
                .flat_map(|(gate, up)| [gate, up].concat())
                .collect();
            for level in Level::all() {
                let mut output = vec![0.0; 1002];
                level.run(Gated {
                    activation,
                    gate_up: &rows,
                    output: &mut output,
                    intermediate: 501,
                });
                assert_eq!(output, expected, "{activation:?} {level:?}");
            }
        }
        assert_eq!(silu(0.0), 0.0);
        assert!((silu(1.0) - 0.731_058_6).abs() < 1e-6);
        assert!(silu(-1000.0).abs() < 1e-30);
    }

    #[test]
    fn the_gelu_is_that_of_tanh() {
        for i in -2000..2000 {
            let x = f64::from(i) * 0.005;
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            let exact = 0.5 * x * (1.0 + u.tanh());
            let found = f64::from(gelu_tanh(x as f32));
            assert!((found - exact).abs() < 1e-6, "{x}: {found} is not {exact}");
        }
        assert_eq!([gelu_tanh(1e30), relu(-1.0), relu(2.0)], [1e30, 0.0, 2.0]);
        assert!(gelu_tanh(-1e30).abs() < 1e-6);
    }

    #[test]
    fn soft_caps_bound_and_keep_what_is_small() {
        let values: Vec<f32> = (-300..300).map(|i| i as f32 * 0.1).collect();
        for level in Level::all() {
            let mut capped = values.clone();
            level.run(SoftCap {
                cap: 3.0,
                values: &mut capped,
            });
            for (x, capped) in values.iter().zip(capped) {
                let exact = 3.0 * (f64::from(*x) / 3.0).tanh();
                assert!((f64::from(capped) - exact).abs() < 1e-6, "{x}: {capped}");
            }
        }
    }
}
