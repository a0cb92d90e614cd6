//! Activations in blocks of 32 signed bytes with a scale.

use speculation::simd::{Kernel, Level};

use super::blocked::Tile;
use crate::cpu::{Cpu, SharedSlice};

/// Inputs that share a scale.
pub(crate) const BLOCK: usize = 32;
/// Steps of four inputs in a block.
pub(super) const STEPS: usize = BLOCK / 4;
/// Numbers of activations from which threads share quantising them.
const PARALLEL: usize = 8 << 10;
/// Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
const ROUNDING: f32 = 12_582_912.0;

/// 32 inputs of one activation row, or numbers of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputBlock {
    /// Four signed bytes each, the first in the lowest bits.
    pub(crate) quants: [i32; STEPS],
    pub(crate) scale: f32,
    /// -128 times the sum of the quants, which undoes the 128 added to Q8_0 weights and keys.
    pub(crate) offset: i32,
    /// The sum of the quants times the scale, which Q4_K's minima are multiplied with.
    pub(super) sum: f32,
}

impl InputBlock {
    pub(crate) const ZERO: Self = Self {
        quants: [0; STEPS],
        scale: 0.0,
        offset: 0,
        sum: 0.0,
    };

    /// Quantises up to 32 values.
    #[inline(always)]
    pub(crate) fn of(values: &[f32]) -> Self {
        let (scale, quants) = quantize_block(values);
        let mut packed = [0; STEPS];
        for (packed, four) in packed.iter_mut().zip(quants.as_chunks::<4>().0) {
            let [a, b, c, d] = *four;
            *packed = i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8]);
        }
        Self::new(scale, packed, quants.iter().sum())
    }

    /// Quants, and the sum of them.
    #[inline(always)]
    pub(super) fn new(scale: f32, quants: [i32; STEPS], sum: i32) -> Self {
        Self {
            quants,
            scale,
            offset: -128 * sum,
            sum: scale * sum as f32,
        }
    }
}

/// Activations in blocks, to be written: `(blocks, rows)` of each [`Tile`], one tile after the other, so that a
/// kernel needs one pointer for all of its rows.
pub(super) struct Quantized<'a> {
    rows: usize,
    /// Blocks of a row.
    per_row: usize,
    blocks: SharedSlice<'a, InputBlock>,
}

impl<'a> Quantized<'a> {
    /// `rows` rows of `inputs`, in `blocks`; every block is to be written.
    pub(super) fn new(rows: usize, inputs: usize, blocks: &'a mut Vec<InputBlock>) -> Self {
        let per_row = inputs.div_ceil(BLOCK);
        blocks.resize(rows * per_row, InputBlock::ZERO);
        Self {
            rows,
            per_row,
            blocks: SharedSlice::new(blocks),
        }
    }

    /// The blocks of `row`.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> QuantizedRow<'_> {
        let tile = Tile::of_row(row, self.rows);
        QuantizedRow {
            blocks: &self.blocks,
            first: tile.start * self.per_row + row - tile.start,
            stride: tile.rows,
        }
    }
}

/// The blocks of one row, to be written.
#[derive(Clone, Copy)]
pub(crate) struct QuantizedRow<'a> {
    blocks: &'a SharedSlice<'a, InputBlock>,
    first: usize,
    stride: usize,
}

impl QuantizedRow<'_> {
    /// Writes block `index`.
    ///
    /// # Safety
    /// Nobody else writes it meanwhile.
    #[inline(always)]
    pub(super) unsafe fn write(&self, index: usize, block: InputBlock) {
        // SAFETY: the caller's promise.
        let place = unsafe { self.blocks.range(self.first + index * self.stride, 1) };
        place[0] = block;
    }
}

/// Quantises activations `x`, `(rows, inputs)`.
pub(super) fn quantize_rows(cpu: &Cpu, x: &[f32], inputs: usize, quantized: &mut Vec<InputBlock>) {
    let rows = x.len() / inputs;
    let blocks = Quantized::new(rows, inputs, quantized);
    let quantize = |row: usize| {
        cpu.level.run(QuantizeRow {
            level: cpu.level,
            values: &x[row * inputs..][..inputs],
            blocks: blocks.row(row),
        });
    };
    if x.len() < PARALLEL {
        (0..rows).for_each(quantize);
    } else {
        cpu.threads.each(rows, &quantize);
    }
}

/// The scale and the quants, -127 to 127, of up to 32 values: value ≈ quant * scale.
#[inline(always)]
pub(crate) fn quantize_block(values: &[f32]) -> (f32, [i32; BLOCK]) {
    // Whole blocks are read where they stand.
    if let Some(values) = values.as_array() {
        return quantize_whole(values);
    }
    let mut padded = [0.0; BLOCK];
    padded[..values.len()].copy_from_slice(values);
    quantize_whole(&padded)
}

#[inline(always)]
fn quantize_whole(values: &[f32; BLOCK]) -> (f32, [i32; BLOCK]) {
    // Numbers without a sign are ordered as their bits are; infinities and NaN are the largest.
    let mut largest = 0;
    for value in values {
        largest = largest.max(value.abs().to_bits());
    }
    let (scale, inverse) = scales(largest);
    if scale.is_nan() {
        return (scale, [0; BLOCK]);
    }
    // Plain loops: what they call would be compiled without the caller's instructions.
    let mut quants = [0; BLOCK];
    for (quant, value) in quants.iter_mut().zip(values) {
        let shifted = value * inverse + ROUNDING;
        *quant = shifted.to_bits().cast_signed() - ROUNDING.to_bits().cast_signed();
    }
    (scale, quants)
}

/// Returns what quants are multiplied by, and what values are, in a block whose largest magnitude has these bits.
#[inline(always)]
fn scales(largest: u32) -> (f32, f32) {
    let largest = f32::from_bits(largest);
    if !largest.is_finite() {
        // A broken block must not come out as plausible numbers.
        return (f32::NAN, 0.0);
    }
    let inverse = 127.0 / largest;
    // Numbers too small for an inverse count as zero.
    let inverse = if inverse.is_finite() { inverse } else { 0.0 };
    (largest / 127.0, inverse)
}

/// Quantises a row of activations, `(inputs)`, which nobody else does.
struct QuantizeRow<'a> {
    /// What this is compiled for.
    level: Level,
    values: &'a [f32],
    blocks: QuantizedRow<'a>,
}

impl Kernel for QuantizeRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (index, values) in self.values.chunks(BLOCK).enumerate() {
            let block = quantize(self.level, values);
            // SAFETY: this row's alone.
            unsafe { self.blocks.write(index, block) };
        }
    }
}

/// Quantises up to 32 values. To be inlined into what is compiled for `level`.
#[inline(always)]
pub(super) fn quantize(level: Level, values: &[f32]) -> InputBlock {
    #[cfg(target_arch = "x86_64")]
    if let (Level::Avx512Vnni { .. }, Some(values)) = (level, values.as_array()) {
        // SAFETY: this level is made only on CPUs with the features that the function enables.
        return unsafe { quantize_avx512(values) };
    }
    InputBlock::of(values)
}

/// Quantises one block with the roundings of the portable loop, so to the same bits.
#[inline]
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn quantize_avx512(values: &[f32; BLOCK]) -> InputBlock {
    #[allow(clippy::wildcard_imports, reason = "names of instructions")]
    use std::arch::x86_64::*;

    // SAFETY: two times 16 of 32 floats.
    let (first, second) = unsafe {
        let start = values.as_ptr();
        (_mm512_loadu_ps(start), _mm512_loadu_ps(start.add(16)))
    };
    let largest = _mm512_reduce_max_epu32(_mm512_max_epu32(
        _mm512_castps_si512(_mm512_abs_ps(first)),
        _mm512_castps_si512(_mm512_abs_ps(second)),
    ));
    let (scale, inverse) = scales(largest);
    if scale.is_nan() {
        return InputBlock::new(scale, [0; STEPS], 0);
    }
    let (inverse, rounding) = (_mm512_set1_ps(inverse), _mm512_set1_ps(ROUNDING));
    let none = _mm512_castps_si512(rounding);
    let first = _mm512_add_ps(_mm512_mul_ps(first, inverse), rounding);
    let first = _mm512_sub_epi32(_mm512_castps_si512(first), none);
    let second = _mm512_add_ps(_mm512_mul_ps(second, inverse), rounding);
    let second = _mm512_sub_epi32(_mm512_castps_si512(second), none);
    let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(first, second));
    let mut quants = [0; STEPS];
    let halves: *mut __m128i = quants.as_mut_ptr().cast();
    // SAFETY: two times 16 of 32 bytes.
    unsafe {
        _mm_storeu_si128(halves, _mm512_cvtepi32_epi8(first));
        _mm_storeu_si128(halves.add(1), _mm512_cvtepi32_epi8(second));
    }
    InputBlock::new(scale, quants, sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_rounded_to_127_steps_of_their_largest() {
        for count in [1, 31, BLOCK] {
            let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin() - 0.1).collect();
            let largest = values.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
            let (scale, quants) = quantize_block(&values);
            assert_eq!(scale, largest / 127.0);
            for (i, quant) in quants.into_iter().enumerate() {
                let value = values.get(i).copied().unwrap_or(0.0);
                let exact = (value * (127.0 / largest)).round_ties_even();
                assert_eq!(quant as f32, exact, "{i} of {count}");
            }
        }
    }

    #[test]
    fn every_level_gives_the_same_blocks() {
        let mut x: Vec<f32> = (0..4 * 200)
            .map(|i| (i as f32 * 0.37).sin() * i as f32)
            .collect();
        // Halves between two quants, then blocks of nothing, of the smallest numbers, and broken ones.
        x[32..35].copy_from_slice(&[127.0, 2.5, -3.5]);
        x[35..64].fill(0.5);
        x[64..96].fill(-0.0);
        x[96..128].fill(1e-40);
        x[200 + 7] = f32::NAN;
        x[200 + 50] = f32::NEG_INFINITY;
        let blocks = |level| {
            let mut quantized = Vec::new();
            let cpu = Cpu {
                level,
                ..Cpu::detect()
            };
            quantize_rows(&cpu, &x, 200, &mut quantized);
            let bits = |block: InputBlock| {
                let scales = [block.scale, block.sum].map(|s| (s.is_nan(), s.to_bits()));
                (
                    block.quants,
                    block.offset,
                    scales.map(|(nan, bits)| if nan { 1 } else { bits }),
                )
            };
            quantized.into_iter().map(bits).collect::<Vec<_>>()
        };
        let expected = blocks(Level::Baseline);
        // The second row's first two blocks, of four rows side by side, seven blocks each.
        assert_eq!(expected.len(), 28);
        let broken = |block: &usize| expected[*block].2 == [1, 1];
        assert_eq!((0..28).filter(broken).collect::<Vec<_>>(), [1, 5]);
        for level in Level::all() {
            assert_eq!(blocks(level), expected, "{level:?}");
        }
    }

    #[test]
    fn what_has_no_inverse_is_zero_and_what_is_broken_no_number() {
        for tiny in [0.0, -0.0, f32::MIN_POSITIVE, -1e-44] {
            let mut values = [0.0; BLOCK];
            values[3] = tiny;
            let (scale, quants) = quantize_block(&values);
            assert!(scale.abs() < 1e-38 && quants == [0; BLOCK], "{tiny}");
        }
        for broken in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = [1.0; BLOCK];
            values[30] = broken;
            assert!(quantize_block(&values).0.is_nan(), "{broken}");
            assert!(quantize_block(&values[..31]).0.is_nan(), "{broken}");
        }
    }
}
