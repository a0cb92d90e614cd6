//! Divisors of a rotation's frequencies as GGUF has them, in tensors: LongRoPE's as they are, and Llama 3's, whose
//! four constants have to be found from them.

use std::f64::consts::PI;

use serde_json::Value as Json;

use super::GgufError;
use crate::{config::RopeConfig, rope::RopeScaling};

/// The tensor of Llama 3's factors.
pub(crate) const LLAMA3: &str = "rope_freqs.weight";
/// Those of LongRoPE.
pub(crate) const SHORT: &str = "rope_factors_short.weight";
pub(crate) const LONG: &str = "rope_factors_long.weight";

/// Largest relative difference between factors that count as the same.
const TOLERANCE: f64 = 1e-4;

/// Returns what the frequency of a wave of that length, in positions, is divided by; `None` where frequencies are not
/// stretched as in Llama 3.
fn divisor(scaling: &RopeScaling, wavelength: f64) -> Option<f64> {
    let RopeScaling::Llama3 {
        factor,
        low_freq_factor: low,
        high_freq_factor: high,
        original_context_len,
    } = *scaling
    else {
        return None;
    };
    let original = original_context_len as f64;
    Some(if wavelength < original / high {
        1.0
    } else if wavelength > original / low {
        factor
    } else {
        let smooth = (original / wavelength - low) / (high - low);
        1.0 / ((1.0 - smooth) / factor + smooth)
    })
}

/// Positions in which dimension `i` of `half` rotates once.
fn wavelength(theta: f64, i: usize, half: usize) -> f64 {
    2.0 * PI * libm::pow(theta, i as f64 / half as f64)
}

/// The tensors of factors that `rope` has in heads of `head_dim` dimensions.
pub(crate) fn write(rope: &RopeConfig, head_dim: usize) -> Vec<(&'static str, Vec<f32>)> {
    if let RopeScaling::LongRope(long_rope) = &rope.scaling {
        return vec![
            (LONG, long_rope.long_factors.clone()),
            (SHORT, long_rope.short_factors.clone()),
        ];
    }
    let half = head_dim / 2;
    let divisors = (0..half).map(|i| divisor(&rope.scaling, wavelength(rope.theta, i, half)));
    let factors: Option<Vec<f32>> = divisors.map(|divisor| Some(divisor? as f32)).collect();
    let factors = factors.map(|factors| (LLAMA3, factors));
    factors.into_iter().collect()
}

/// Finds the constants that explain `factors`, and puts them into the config's `rope_parameters`.
///
/// Constants that differ by a common multiple give the same factors: the low frequency factor is
/// taken to be 1, as it is in every model. They are whole numbers in every model, too, and rounded,
/// so that frequencies come out as they were in the checkpoint, to the last bit.
pub(crate) fn read(factors: &[f32], theta: f64, rope: &mut Json) -> Result<(), GgufError> {
    let largest = factors.iter().copied().fold(1.0, f32::max);
    if factors.is_empty()
        || factors
            .iter()
            .any(|factor| !factor.is_finite() || *factor < 1.0)
    {
        return Err(GgufError::RopeFactors(LLAMA3));
    }
    if largest == 1.0 {
        return Ok(());
    }
    let factor = f64::from(largest);
    let explains = |high: f64, original: f64| {
        let scaling = RopeScaling::Llama3 {
            factor,
            low_freq_factor: 1.0,
            high_freq_factor: high,
            original_context_len: original as usize,
        };
        factors.iter().enumerate().all(|(i, &found)| {
            let expected = divisor(&scaling, wavelength(theta, i, factors.len()));
            expected.is_some_and(|expected| (expected / f64::from(found) - 1.0).abs() < TOLERANCE)
        })
    };
    let (high, original) = candidates(factors, theta, factor)
        .into_iter()
        .map(|(high, original)| (high, original.round()))
        .find(|&(high, original)| original >= 1.0 && explains(high, original))
        .ok_or(GgufError::RopeFactors(LLAMA3))?;
    rope["rope_type"] = "llama3".into();
    rope["factor"] = factor.into();
    rope["low_freq_factor"] = 1.0.into();
    rope["high_freq_factor"] = high.into();
    rope["original_max_position_embeddings"] = (original as u64).into();
    Ok(())
}

/// High frequency factors and original contexts that may explain `factors`.
fn candidates(factors: &[f32], theta: f64, factor: f64) -> Vec<(f64, f64)> {
    // Published models.
    let mut candidates = vec![(4.0, 8192.0)];
    // Where the divisor is neither 1 nor the factor: the wave's length and how far between it is.
    let between: Vec<(f64, f64)> = factors
        .iter()
        .enumerate()
        .filter(|(_, divisor)| **divisor > 1.0 && f64::from(**divisor) < factor)
        .map(|(i, &divisor)| {
            let smooth = (1.0 / f64::from(divisor) - 1.0 / factor) / (1.0 - 1.0 / factor);
            (wavelength(theta, i, factors.len()), smooth)
        })
        .collect();
    for &(length, smooth) in &between {
        candidates.push((4.0, length * (smooth * 3.0 + 1.0)));
    }
    for pair in between.windows(2) {
        let [(first, s), (second, t)] = [pair[0], pair[1]];
        // original / length = 1 + smooth * (high - 1), at both.
        let range = (1.0 / first - 1.0 / second) / (s / second - t / first);
        let original = first * (1.0 + s * range);
        candidates.push((1.0 + range.round(), original));
    }
    if between.is_empty() {
        // Any boundary between the last short and the first long wave will do.
        let shortest = factors.iter().position(|divisor| *divisor > 1.0);
        let length = wavelength(theta, shortest.unwrap_or_default(), factors.len());
        candidates.push((4.0, length * 0.99));
    }
    candidates
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(scaling: (f64, f64, f64, usize), theta: f64, head_dim: usize) -> Json {
        let (factor, low, high, original) = scaling;
        let scaling = RopeScaling::Llama3 {
            factor,
            low_freq_factor: low,
            high_freq_factor: high,
            original_context_len: original,
        };
        let rope = RopeConfig {
            theta,
            scaling,
            dims: None,
        };
        let (name, factors) = write(&rope, head_dim).remove(0);
        assert_eq!(name, LLAMA3);
        let mut rope = json!({});
        read(&factors, theta, &mut rope).unwrap();
        rope
    }

    #[test]
    fn constants_are_found_from_factors() {
        for scaling in [
            (8.0, 1.0, 4.0, 8192),
            (32.0, 1.0, 4.0, 8192),
            (8.0, 1.0, 4.0, 64),
            (16.0, 1.0, 9.0, 4096),
        ] {
            for head_dim in [64, 128] {
                let expected = json!({
                    "rope_type": "llama3", "factor": scaling.0, "low_freq_factor": scaling.1,
                    "high_freq_factor": scaling.2, "original_max_position_embeddings": scaling.3,
                });
                assert_eq!(found(scaling, 500_000.0, head_dim), expected, "{scaling:?}");
            }
        }
    }

    #[test]
    fn one_wave_between_is_enough() {
        let rope = found((8.0, 1.0, 4.0, 64), 500_000.0, 16);
        assert_eq!(rope["original_max_position_embeddings"], 64);
    }

    #[test]
    fn factors_of_another_kind_are_refused() {
        for factors in [
            vec![1.0, 3.0, 2.0, 8.0],
            vec![0.5, 1.0],
            vec![f32::NAN],
            vec![],
        ] {
            let read = read(&factors, 10_000.0, &mut json!({}));
            assert!(
                matches!(read, Err(GgufError::RopeFactors(_))),
                "{factors:?}"
            );
        }
        let mut rope = json!({});
        read(&[1.0, 1.0], 10_000.0, &mut rope).unwrap();
        assert_eq!(rope, json!({}));
    }
}
