//! Numbers into a block of Q4_K, to the bits that candle's quantisation has, which is ggml's first: sub-blocks side by
//! side instead of one after the other.
//!
//! Each sub-block's scale and minimum are fitted by least squares in up to five rounds, in which no sum is of two
//! sub-blocks: so they are the lanes of vectors, and each sum has the order it had.

use half::f16;

use super::{BLOCK, SUBS, SUPER};
use crate::linear::ggml::Q4KBlock;

/// A number of each sub-block.
type Lanes = [f32; SUBS];

/// Largest quant.
const MOST: f32 = 15.0;
/// Largest scale or minimum of a sub-block.
const MOST_SCALE: f32 = 63.0;
/// Rounds of fitting.
const ROUNDS: usize = 5;

/// Quantises a block; of one that holds what is no finite number all are NaN, which must not come out as plausible
/// numbers.
#[inline(always)]
pub(super) fn quantize(values: &[f32; SUPER]) -> Q4KBlock {
    let mut x = [[0.0; SUBS]; BLOCK];
    let mut broken = false;
    for (sub, values) in values.as_chunks::<BLOCK>().0.iter().enumerate() {
        for (x, value) in x.iter_mut().zip(values) {
            x[sub] = *value;
        }
    }
    for value in values {
        broken |= !value.is_finite();
    }
    if broken {
        return Q4KBlock {
            scale: f32::NAN,
            min_scale: 0.0,
            scales: [0; SUBS],
            mins: [0; SUBS],
            pairs: [[0; BLOCK / 2]; SUBS],
        };
    }
    let (scales, mins) = fit(&x);
    let (scale, scales) = in_6_bits(&scales);
    let (min_scale, mins) = in_6_bits(&mins);
    let pairs = pairs(
        &x,
        scales.map(|sub| scale * f32::from(sub)),
        mins.map(|sub| min_scale * f32::from(sub)),
    );
    Q4KBlock {
        scale,
        min_scale,
        scales,
        mins,
        pairs,
    }
}

/// The scales and the minima, with their signs turned, that fit the numbers of sub-blocks best.
#[inline(always)]
fn fit(x: &[Lanes; BLOCK]) -> (Lanes, Lanes) {
    let (mut min, mut max) = (x[0], x[0]);
    for x in x {
        for sub in 0..SUBS {
            min[sub] = if x[sub] < min[sub] { x[sub] } else { min[sub] };
            max[sub] = if x[sub] > max[sub] { x[sub] } else { max[sub] };
        }
    }
    let mut differ = [false; SUBS];
    let (mut scale, mut inverse) = ([0.0; SUBS], [0.0; SUBS]);
    for sub in 0..SUBS {
        differ[sub] = max[sub] != min[sub];
        min[sub] = if min[sub] < 0.0 { min[sub] } else { 0.0 };
        inverse[sub] = MOST / (max[sub] - min[sub]);
        scale[sub] = 1.0 / inverse[sub];
    }
    let mut fitting = differ;
    let mut quants = [[0.0; SUBS]; BLOCK];
    for _ in 0..ROUNDS {
        if fitting == [false; SUBS] {
            break;
        }
        let mut changed = [false; SUBS];
        let (mut products, mut squares) = ([0.0; SUBS], [0.0; SUBS]);
        for (x, quants) in x.iter().zip(&mut quants) {
            for sub in 0..SUBS {
                let above = x[sub] - min[sub];
                let quant = rounded(inverse[sub] * above);
                changed[sub] |= quant != quants[sub];
                quants[sub] = quant;
                products[sub] += above * quant;
                // Whole numbers, and so exact.
                squares[sub] += quant * quant;
            }
        }
        let mut fitted = [0.0; SUBS];
        for sub in 0..SUBS {
            fitted[sub] = products[sub] / squares[sub];
        }
        let mut rests = [-0.0; SUBS];
        for (x, quants) in x.iter().zip(&quants) {
            for sub in 0..SUBS {
                rests[sub] += x[sub] - fitted[sub] * quants[sub];
            }
        }
        for sub in 0..SUBS {
            let rest = rests[sub] / BLOCK as f32;
            let rest = if rest > 0.0 { 0.0 } else { rest };
            // What has come to rest stays.
            scale[sub] = if fitting[sub] {
                fitted[sub]
            } else {
                scale[sub]
            };
            min[sub] = if fitting[sub] { rest } else { min[sub] };
            inverse[sub] = 1.0 / scale[sub];
            fitting[sub] &= changed[sub];
        }
    }
    for sub in 0..SUBS {
        // Numbers that are all the same have neither scale nor minimum.
        scale[sub] = if differ[sub] { scale[sub] } else { 0.0 };
        min[sub] = if differ[sub] { -min[sub] } else { 0.0 };
    }
    (scale, min)
}

/// The unit of the sub-blocks' numbers, in half precision, and each number as a multiple of it.
#[inline(always)]
fn in_6_bits(values: &Lanes) -> (f32, [u8; SUBS]) {
    let largest = values.iter().fold(0.0_f32, |most, value| value.max(most));
    let inverse = if largest > 0.0 {
        MOST_SCALE / largest
    } else {
        0.0
    };
    let multiple = |value: f32| ((inverse * value).round() as i32).min(MOST_SCALE as i32) as u8;
    let common = f16::from_f32(largest / MOST_SCALE).to_f32();
    (common, values.map(multiple))
}

/// The quants of numbers, as [`Q4KBlock::pairs`] has them, by the scales and minima of their sub-blocks.
#[inline(always)]
fn pairs(x: &[Lanes; BLOCK], scales: Lanes, mins: Lanes) -> [[u8; BLOCK / 2]; SUBS] {
    let mut quants = [[0; SUBS]; BLOCK];
    for (x, quants) in x.iter().zip(&mut quants) {
        for sub in 0..SUBS {
            let quant = rounded((x[sub] + mins[sub]) / scales[sub]);
            let quant = if scales[sub] == 0.0 { 0.0 } else { quant };
            // SAFETY: between 0 and 15, by the line above and what `rounded` returns.
            quants[sub] = unsafe { quant.to_int_unchecked::<i32>() };
        }
    }
    let mut pairs = [[0; BLOCK / 2]; SUBS];
    for (sub, pairs) in pairs.iter_mut().enumerate() {
        for (i, pair) in pairs.iter_mut().enumerate() {
            *pair = (quants[i][sub] | quants[BLOCK / 2 + i][sub] << 4) as u8;
        }
    }
    pairs
}

/// The whole number nearest to `value`, of two the greater, within 0 to 15; 0 for NaN.
#[inline(always)]
fn rounded(value: f32) -> f32 {
    /// The largest number below a half: what is just below a half stays below 1 with it, and a half does not.
    const HALF: f32 = 0.5 - f32::EPSILON / 4.0;
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < MOST { value } else { MOST };
    (value + HALF).trunc()
}

#[cfg(test)]
mod tests;
