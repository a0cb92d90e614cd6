//! The numbers distributions are made of: `f32` where served, `f64` where proved.
//!
//! Exponential and logarithm are software, so that a distribution has the same bits on every machine: the
//! platform's own differ between C libraries.

use num_traits::{Float, NumAssign};

use crate::exp::{exp, ln};
use crate::simd::kernel;

/// A floating-point type that distributions can be computed in.
pub trait Real: Float + NumAssign + Default + std::fmt::Debug + Send + Sync + 'static {
    /// `e^self`, the same bits on every machine. Defined for `self <= 0`, which is all a softmax
    /// needs; `-inf` gives 0.
    #[must_use]
    fn exp_nonpositive(self) -> Self;

    /// The natural logarithm, the same bits on every machine; 0 gives `-inf`. In single precision it
    /// vectorises.
    #[must_use]
    fn ln_portable(self) -> Self;

    /// From a stored value.
    fn from_f32(value: f32) -> Self;

    /// From a computed value, rounded to nearest.
    fn from_f64(value: f64) -> Self;

    /// To double precision, exactly.
    fn as_f64(self) -> f64;
}

impl Real for f32 {
    #[inline(always)]
    fn exp_nonpositive(self) -> Self {
        exp(self)
    }

    #[inline(always)]
    fn ln_portable(self) -> Self {
        ln(self)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn as_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn exp_nonpositive(self) -> Self {
        libm::exp(self)
    }

    fn ln_portable(self) -> Self {
        libm::log(self)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        f64::from(value)
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn as_f64(self) -> f64 {
        self
    }
}

/// The sum of `term(value)` in double precision, in the order of [`sum_of_pairs`].
#[inline(always)]
pub fn sum_of<F: Real>(values: &[F], term: impl Fn(F) -> f64) -> f64 {
    sum_of_pairs(values, values, |value, _| term(value))
}

/// The sum of `term(left, right)` over two rows of one length in double precision, in one fixed order: eight
/// interleaved partial sums, added pairwise.
#[inline(always)]
pub fn sum_of_pairs<F: Real>(left: &[F], right: &[F], term: impl Fn(F, F) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (lefts, rights) = (left.chunks_exact(8), right.chunks_exact(8));
    let tail = lefts.remainder().iter().zip(rights.remainder());
    for (left, right) in lefts.zip(rights) {
        for (lane, (&left, &right)) in lanes.iter_mut().zip(left.iter().zip(right)) {
            *lane += term(left, right);
        }
    }
    for (lane, (&left, &right)) in lanes.iter_mut().zip(tail) {
        *lane += term(left, right);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// The largest value, NaN left out; `-inf` if there is none. Written over lanes so that it
/// vectorises.
#[inline(always)]
pub fn maximum<F: Real>(values: &[F]) -> F {
    let larger = |a: F, b: F| if b > a { b } else { a };
    let mut lanes = [F::neg_infinity(); 16];
    let chunks = values.chunks_exact(16);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, value);
        }
    }
    lanes
        .iter()
        .chain(tail)
        .fold(F::neg_infinity(), |a, &b| larger(a, b))
}

kernel! {
    /// Index of the largest value, the lowest among equals; 0 if all are NaN.
    pub fn argmax<'a, F: Real>(values: &'a [F]) -> usize {
        /// Values looked at without a branch.
        const BLOCK: usize = 64;
        let largest = maximum(values);
        #[allow(
            clippy::needless_bitwise_bool,
            reason = "a branch a value would keep the loop from being vectorised"
        )]
        let holds = |block: &[F]| {
            block
                .iter()
                .fold(false, |any, &value| any | (value == largest))
        };
        let Some(block) = values.chunks(BLOCK).position(holds) else {
            return 0;
        };
        let values = values[block * BLOCK..].iter();
        let within = values.take(BLOCK).position(|&value| value == largest);
        block * BLOCK + within.unwrap_or(0)
    }
}

kernel! {
    /// Whether any value is NaN.
    pub(crate) fn any_nan<'a, F: Real>(values: &'a [F]) -> bool {
        values.iter().fold(false, |any, value| any | value.is_nan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_does_not_lose_the_tail() {
        let values: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(sum_of(&values, |value| value + 1.0), 209.0);
        assert_eq!(sum_of_pairs(&values, &values, |a, b| a + b), 380.0);
    }

    #[test]
    fn argmax_takes_the_lowest_of_equals() {
        assert_eq!(argmax(&[1.0_f32, 3.0, 3.0]), 1);
        let mut values = [0.0_f64; 37];
        values[35] = 2.0;
        values[20] = 2.0;
        assert_eq!(argmax(&values), 20);
        values[3] = f64::NAN;
        assert_eq!(maximum(&values), 2.0);
        // Beyond the first block, and in the last one, which is not whole.
        for at in [63, 64, 127, 128, 149] {
            let mut values = [f32::NEG_INFINITY; 150];
            values[7] = f32::NAN;
            values[at] = -1.0;
            values[149] = -1.0;
            assert_eq!(argmax(&values), at);
            assert!(any_nan(&values) && !any_nan(&values[8..]));
        }
        assert_eq!(argmax(&[f32::NAN; 70]), 0);
    }
}
