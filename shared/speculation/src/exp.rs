//! The exponential, the same bits on every machine.
//!
//! The system's `expf` differs between C libraries, and a call a number would keep loops from being
//! vectorised; at this model size that costs as much as the products. So: plain arithmetic, each
//! operation rounded once, without branches.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_within_two_ulp() {
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
    fn ends_are_zero_and_large() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-100.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(200.0) > 1e38);
        assert!(exp(f32::NAN).is_nan());
    }
}
