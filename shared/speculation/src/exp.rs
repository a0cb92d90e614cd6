//! The exponential and the natural logarithm, the same bits on every machine.
//!
//! The system's `expf` differs between C libraries, and a call a number would keep loops from being
//! vectorised; at this model size that costs as much as the products. So: plain arithmetic, each
//! operation rounded once, without branches. An entropy takes one logarithm for each token.

/// Below this, `exp` would be subnormal: the result is 0.
const LOWEST: f32 = -87.0;
/// Above this, `2^n` would overflow.
const HIGHEST: f32 = 88.0;
/// ln 2 in two parts; `n * LN2_HIGH` is exact for the `n` that occur.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even.
const ROUNDING: f32 = 12_582_912.0;

/// e^x within 2 units in the last place for x in [-87, 88]; 0 below, saturated above.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let clamped = x.clamp(LOWEST, HIGHEST);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    // Minimax polynomial of (e^r - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2] (Cephes, expf).
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 0.166_666_65;
    p = p * r + 0.5;
    let mantissa = (p * r * r + r) + 1.0;
    // The low bits of `shifted` hold n; added to the exponent field they multiply by 2^n.
    let scale = (shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits());
    let result = mantissa * f32::from_bits(scale);
    if x < LOWEST { 0.0 } else { result }
}

/// sqrt(1/2) as bits: mantissas are brought to [sqrt(1/2), sqrt(2)), around 1.
const SQRT_HALF: u32 = 0x3f35_04f3;
/// 2^25: takes a subnormal number to a normal one.
const SUBNORMAL_SCALE: f32 = 33_554_432.0;

/// ln x within 2 units in the last place for positive x, subnormal ones included; `-inf` at 0,
/// `+inf` at `+inf`, NaN below 0.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * SUBNORMAL_SCALE } else { x };
    let shift = if subnormal { -25.0 } else { 0.0 };
    let above = scaled.to_bits().wrapping_sub(SQRT_HALF);
    let n = (above as i32 >> 23) as f32 + shift;
    let m = f32::from_bits((above & 0x007f_ffff) + SQRT_HALF) - 1.0;
    // Minimax polynomial of (ln(1 + m) - m + m^2 / 2) / m^3 on [sqrt(1/2), sqrt(2)] - 1 (Cephes,
    // logf).
    let mut p = 7.037_683_6e-2;
    p = p * m - 0.115_146_1;
    p = p * m + 0.116_769_98;
    p = p * m - 0.124_201_41;
    p = p * m + 0.142_493_23;
    p = p * m - 0.166_680_57;
    p = p * m + 0.200_007_14;
    p = p * m - 0.249_999_94;
    p = p * m + 0.333_333_3;
    let square = m * m;
    let low = (p * m * square + n * LN2_LOW) - 0.5 * square;
    let result = (low + m) + n * LN2_HIGH;
    let result = if x == 0.0 { f32::NEG_INFINITY } else { result };
    let result = if x < f32::INFINITY { result } else { x };
    if x < 0.0 { f32::NAN } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Kernel, Level};

    #[test]
    fn an_exponential_is_within_two_ulp() {
        let mut worst = 0.0_f64;
        for i in -8_700_000..8_800_000_i32 {
            let x = i as f32 * 1e-5;
            let exact = f64::from(x).exp();
            let ulp = f64::from(f32::EPSILON) * exact;
            worst = worst.max((f64::from(exp(x)) - exact).abs() / ulp);
        }
        assert!(worst < 2.0, "{worst} ulp");
    }

    #[test]
    fn ends_of_an_exponential_are_zero_and_large() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-100.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(200.0) > 1e38);
        assert!(exp(f32::NAN).is_nan());
    }

    fn error_in_ulp(x: f32) -> f64 {
        let exact = f64::from(x).ln();
        let got = ln(x);
        let nearest = exact as f32;
        let ulp = f64::from(f32::from_bits(nearest.abs().to_bits() + 1) - nearest.abs());
        (f64::from(got) - exact).abs() / ulp
    }

    #[test]
    fn a_logarithm_is_within_two_ulp() {
        let mut worst = (0.0_f64, 0.0);
        // A stride without a common factor with 2^23 meets all exponents with mixed mantissas; the
        // neighbourhood of 1, where the result is small, is looked at number by number.
        let spread = (1..f32::INFINITY.to_bits()).step_by(173);
        let around_one = 0x3f7f_0000..0x3f81_0000;
        for bits in spread.chain(around_one) {
            let x = f32::from_bits(bits);
            let error = error_in_ulp(x);
            if error > worst.0 {
                worst = (error, x);
            }
        }
        assert!(worst.0 < 2.0, "{} ulp at {}", worst.0, worst.1);
    }

    #[test]
    fn ends_are_as_of_a_logarithm() {
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(0.0), f32::NEG_INFINITY);
        assert_eq!(ln(-0.0), f32::NEG_INFINITY);
        assert_eq!(ln(f32::INFINITY), f32::INFINITY);
        assert!(ln(-1.0).is_nan());
        assert!(ln(f32::NEG_INFINITY).is_nan());
        assert!(ln(f32::NAN).is_nan());
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        struct All([f32; 1031]);
        impl Kernel for All {
            type Output = Vec<u32>;

            #[inline(always)]
            fn run(mut self) -> Vec<u32> {
                for x in &mut self.0 {
                    *x = ln(*x);
                }
                self.0.iter().map(|x| x.to_bits()).collect()
            }
        }
        let numbers = std::array::from_fn(|i| f32::from_bits(i as u32 * 2_070_001));
        let expected = All(numbers).run();
        for level in Level::all() {
            assert_eq!(level.run(All(numbers)), expected, "{level:?}");
        }
    }
}
