//! The numbers laws are made of: `f32` where served, `f64` where proved.
//!
//! Exponential and logarithm are software, so that a law has the same bits on every machine: the
//! platform's own differ between C libraries.

use num_traits::{Float, NumAssign};

/// A floating-point type that laws can be computed in.
pub trait Real: Float + NumAssign + std::fmt::Debug + Send + Sync + 'static {
    /// `e^self`, the same bits on every machine. Defined for `self <= 0`, which is all a softmax
    /// needs; `-inf` gives 0.
    #[must_use]
    fn exp_nonpositive(self) -> Self;

    /// The natural logarithm, the same bits on every machine.
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
    /// Cody-Waite reduction and a polynomial of degree 6, without branches so that it vectorises;
    /// relative error
    /// below 2.5e-7.
    #[inline]
    fn exp_nonpositive(self) -> Self {
        const LN2_HIGH: f32 = 0.693_359_4;
        const LN2_LOW: f32 = -2.121_944_4e-4;
        // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low mantissa bits.
        const ROUND: f32 = 12_582_912.0;
        let x = self.max(-87.0);
        let shifted = x * std::f32::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        let r = (x - n * LN2_HIGH) - n * LN2_LOW;
        let poly = 1.388_888_9e-3_f32;
        let poly = poly * r + 8.333_334e-3;
        let poly = poly * r + 4.166_666_6e-2;
        let poly = poly * r + 0.166_666_67;
        let poly = poly * r + 0.5;
        let poly = poly * r + 1.0;
        let poly = poly * r + 1.0;
        // The integer stands in the low bits of `shifted`; adding the exponent's bias and shifting
        // it into place makes 2^n.
        let scale = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
        if self < -87.0 { 0.0 } else { poly * scale }
    }

    fn ln_portable(self) -> Self {
        libm::logf(self)
    }

    fn from_f32(value: f32) -> Self {
        value
    }

    fn from_f64(value: f64) -> Self {
        value as f32
    }

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

    fn from_f32(value: f32) -> Self {
        f64::from(value)
    }

    fn from_f64(value: f64) -> Self {
        value
    }

    fn as_f64(self) -> f64 {
        self
    }
}

/// The sum of `values` in one fixed order: eight interleaved partial sums, added pairwise.
pub fn sum<F: Real>(values: &[F]) -> F {
    let mut lanes = [F::zero(); 8];
    let chunks = values.chunks_exact(8);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(tail) {
        *lane += value;
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// The largest value, NaN left out; `-inf` if there is none. Written over lanes so that it
/// vectorises.
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
    lanes.iter().chain(tail).fold(F::neg_infinity(), |a, &b| larger(a, b))
}

/// Index of the largest value, the lowest among equals; 0 if all are NaN.
pub fn argmax<F: Real>(values: &[F]) -> usize {
    let largest = maximum(values);
    values.iter().position(|&value| value == largest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_accurate_over_its_whole_range() {
        let mut worst = 0.0_f64;
        for step in 0..870_000 {
            let x = -(step as f32) * 1e-4;
            let exact = libm::exp(f64::from(x));
            let got = f64::from(x.exp_nonpositive());
            worst = worst.max(((got - exact) / exact).abs());
        }
        assert!(worst < 2.5e-7, "relative error {worst:e}");
        assert_eq!(0.0_f32.exp_nonpositive(), 1.0);
        assert_eq!(f32::NEG_INFINITY.exp_nonpositive(), 0.0);
    }

    #[test]
    fn sum_does_not_lose_the_tail() {
        let values: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(sum(&values), 190.0);
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
    }
}
