//! Functions between the matrices of a feed-forward network, the soft cap, and what adds a block to what it was given.

use speculation::{exp::exp, simd::Kernel};

use crate::config::Activation;

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

/// A loop that applies a function, which it is compiled for: a choice for each number would keep it from being
/// vectorised.
pub(crate) trait WithFunction {
    /// Runs the loop. `#[inline(always)]`, as all of a kernel is.
    fn with(self, function: impl Fn(f32) -> f32);
}

/// Runs `work` with the function of `activation`.
#[inline(always)]
pub(crate) fn with_function(activation: Activation, work: impl WithFunction) {
    match activation {
        Activation::Silu => work.with(silu),
        Activation::GeluTanh => work.with(gelu_tanh),
        Activation::Relu => work.with(relu),
    }
}

/// Adds what a block made of the hidden states `x` to them.
pub(crate) fn add(x: &mut [f32], update: &[f32]) {
    for (x, update) in x.iter_mut().zip(update) {
        *x += update;
    }
}

/// Adds what a block made of the hidden states `x`, times `scale`, to them.
pub(crate) fn add_scaled(x: &mut [f32], update: &[f32], scale: f32) {
    for (x, update) in x.iter_mut().zip(update) {
        *x += scale * update;
    }
}

/// The hyperbolic tangent, within about 1e-7.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
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
    fn silu_is_near_its_formula_and_its_ends() {
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
