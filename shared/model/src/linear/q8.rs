//! Q8_0: blocks of 32 signed bytes with one half-precision scale, as in GGUF, laid out for reading
//! once.
//!
//! Sixteen outputs stand interleaved, four consecutive inputs of each at a time, so that a vector
//! holds sixteen independent results and one pass over the weights serves several activation rows.
//! Activations are quantised the same way, a scale for each 32. Within a block sums are integers,
//! hence exact in any order; across blocks they are added in f32 in the order of the inputs. So a
//! result depends neither on the other rows nor on the instruction set.

#[cfg(target_arch = "x86_64")]
use super::q8_x86;
use speculation::simd::{Kernel, Level};

/// Inputs that share a scale.
const BLOCK: usize = 32;
/// Outputs that stand interleaved.
pub(super) const LANES: usize = 16;
/// Steps of four inputs in a block.
pub(super) const STEPS: usize = BLOCK / 4;
/// Most activation rows served by one pass over the weights of a group.
pub(super) const TILE: usize = 6;

/// 32 inputs of 16 outputs.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct WeightBlock {
    /// The weight of output `l` and input `4 * s + i` at `[s][4 * l + i]`, with 128 added.
    pub(super) quants: [[u8; 4 * LANES]; STEPS],
    pub(super) scales: [f32; LANES],
}

/// 32 inputs of one activation row.
#[derive(Clone, Debug)]
pub(super) struct InputBlock {
    /// Four signed bytes each, the first in the lowest bits.
    pub(super) quants: [i32; STEPS],
    pub(super) scale: f32,
    /// -128 times the sum of the quants, which undoes the 128 added to the weights.
    pub(super) offset: i32,
}

impl InputBlock {
    const ZERO: Self = Self {
        quants: [0; STEPS],
        scale: 0.0,
        offset: 0,
    };
}

/// A matrix `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub(super) struct Q8Matrix {
    /// `(groups of 16 outputs, blocks of 32 inputs)`, both padded with zeros.
    blocks: Vec<WeightBlock>,
    inputs: usize,
}

impl Q8Matrix {
    /// Quantises `weights`, `(outputs, inputs)`.
    pub(super) fn quantize(weights: &[f32], inputs: usize) -> Self {
        let empty = WeightBlock {
            quants: [[128; 4 * LANES]; STEPS],
            scales: [0.0; LANES],
        };
        let per_row = inputs.div_ceil(BLOCK);
        let outputs = weights.len() / inputs;
        let mut blocks = vec![empty; outputs.div_ceil(LANES) * per_row];
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let (group, lane) = (output / LANES, output % LANES);
            for (values, block) in row.chunks(BLOCK).zip(&mut blocks[group * per_row..]) {
                let (scale, quants) = quantize_block(values);
                block.scales[lane] = half::f16::from_f32(scale).to_f32();
                for (i, quant) in quants.into_iter().enumerate() {
                    block.quants[i / 4][4 * lane + i % 4] = (quant + 128) as u8;
                }
            }
        }
        Self { blocks, inputs }
    }

    fn blocks_per_row(&self) -> usize {
        self.inputs.div_ceil(BLOCK)
    }

    /// Writes the weights of one output, `(inputs)`.
    pub(super) fn read_row(&self, output: usize, row: &mut [f32]) {
        let (group, lane) = (output / LANES, output % LANES);
        let blocks = &self.blocks[group * self.blocks_per_row()..];
        for (values, block) in row.chunks_mut(BLOCK).zip(blocks) {
            for (i, value) in values.iter_mut().enumerate() {
                let quant = i16::from(block.quants[i / 4][4 * lane + i % 4]) - 128;
                *value = f32::from(quant) * block.scales[lane];
            }
        }
    }

    /// Quantises activations `x`, `(rows, inputs)`, to `(rows, blocks)`.
    pub(super) fn quantize_inputs(&self, level: Level, x: &[f32], quantized: &mut Vec<InputBlock>) {
        let per_row = self.blocks_per_row();
        quantized.resize(x.len() / self.inputs * per_row, InputBlock::ZERO);
        let rows = x.chunks_exact(self.inputs);
        for (row, blocks) in rows.zip(quantized.chunks_exact_mut(per_row)) {
            level.run(QuantizeRow(row, blocks));
        }
    }

    /// The products of every row of `x` with the 16 outputs of `group`, handed to `write` as
    /// (row, results).
    pub(super) fn product(
        &self,
        level: Level,
        group: usize,
        x: &[InputBlock],
        mut write: impl FnMut(usize, &[f32; LANES]),
    ) {
        let per_row = self.blocks_per_row();
        let weights = &self.blocks[group * per_row..][..per_row];
        for (tile, x) in x.chunks(TILE * per_row).enumerate() {
            let mut results = [[0.0; LANES]; TILE];
            let rows = x.len() / per_row;
            match rows {
                1 => dot::<1>(level, weights, x, &mut results),
                2 => dot::<2>(level, weights, x, &mut results),
                3 => dot::<3>(level, weights, x, &mut results),
                4 => dot::<4>(level, weights, x, &mut results),
                5 => dot::<5>(level, weights, x, &mut results),
                _ => dot::<TILE>(level, weights, x, &mut results),
            }
            for (row, result) in results.iter().take(rows).enumerate() {
                write(tile * TILE + row, result);
            }
        }
    }
}

/// The scale and the quants, -127 to 127, of up to 32 values: value ≈ quant * scale.
#[inline(always)]
fn quantize_block(values: &[f32]) -> (f32, [i32; BLOCK]) {
    /// Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
    const ROUNDING: f32 = 12_582_912.0;
    let mut padded = [0.0; BLOCK];
    padded[..values.len()].copy_from_slice(values);
    let mut largest = padded.map(f32::abs);
    for half in [16, 8, 4, 2, 1] {
        for i in 0..half {
            let other = largest[i + half];
            largest[i] = if other > largest[i] {
                other
            } else {
                largest[i]
            };
        }
    }
    let largest = largest[0];
    // Zero times a number is zero, but for infinities and NaN: a broken block must not come out as
    // plausible numbers.
    let broken = padded.iter().fold(0.0, |sum, value| sum + value * 0.0);
    let scale = largest / 127.0 + broken;
    if scale.is_nan() {
        return (scale, [0; BLOCK]);
    }
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let shifted = padded.map(|v| (v * inverse + ROUNDING).to_bits().cast_signed());
    (
        scale,
        shifted.map(|bits| bits - ROUNDING.to_bits().cast_signed()),
    )
}

/// Quantises a row of activations, `(inputs)`, to `(blocks)`.
struct QuantizeRow<'a>(&'a [f32], &'a mut [InputBlock]);

impl Kernel for QuantizeRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (values, block) in self.0.chunks(BLOCK).zip(self.1) {
            let (scale, quants) = quantize_block(values);
            block.scale = scale;
            block.offset = -128 * quants.iter().sum::<i32>();
            let bytes = quants.map(|quant| quant as u8);
            for (packed, four) in block.quants.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *packed = i32::from_le_bytes(*four);
            }
        }
    }
}

/// `results[r][l]` = product of row `r` of `x`, `(ROWS, blocks)`, with output `l` of `weights`.
fn dot<const ROWS: usize>(
    level: Level,
    weights: &[WeightBlock],
    x: &[InputBlock],
    results: &mut [[f32; LANES]; TILE],
) {
    let x: [&[InputBlock]; ROWS] =
        std::array::from_fn(|row| &x[row * weights.len()..][..weights.len()]);
    match level {
        // SAFETY: this level is made only on CPUs with the features that `dot_vnni` enables.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => unsafe { q8_x86::dot_vnni::<ROWS>(weights, x, results) },
        // SAFETY: as above, with AVX2.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 { .. } => unsafe { q8_x86::dot_avx2::<ROWS>(weights, x, results) },
        Level::Baseline => dot_portable::<ROWS>(weights, x, results),
    }
}

fn dot_portable<const ROWS: usize>(
    weights: &[WeightBlock],
    x: [&[InputBlock]; ROWS],
    results: &mut [[f32; LANES]; TILE],
) {
    for (row, total) in x.into_iter().zip(results) {
        *total = [0.0; LANES];
        for (weight, input) in weights.iter().zip(row) {
            let mut sums = [input.offset; LANES];
            for (quants, packed) in weight.quants.iter().zip(input.quants) {
                let four = packed.to_le_bytes().map(u8::cast_signed);
                for lane in 0..LANES {
                    for i in 0..4 {
                        sums[lane] += i32::from(quants[4 * lane + i]) * i32::from(four[i]);
                    }
                }
            }
            for lane in 0..LANES {
                total[lane] += sums[lane] as f32 * (weight.scales[lane] * input.scale);
            }
        }
    }
}
