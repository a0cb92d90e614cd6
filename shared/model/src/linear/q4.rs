//! Q4_K: blocks of 256 inputs in eight sub-blocks of 32 4-bit numbers, each with a scale and a minimum
//! of 6 bits, as in GGUF, laid out for reading once.
//!
//! The layout is that of [`super::q8`], with two steps in a vector: one in the low halves of the bytes,
//! one in the high ones. A weight is `scale * quant - min`, so a sub-block's product is `scale` times a
//! sum of integers, which is exact, less `min` times the sum of the activations, which is known
//! beforehand. Over sub-blocks both are added in f32 in the order of the inputs: so a result depends
//! neither on the other rows nor on the instruction set.

use std::ops::Range;

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};
use speculation::simd::Level;

#[cfg(target_arch = "x86_64")]
use super::q4_x86;
use super::{
    blocked::{Ahead, CHUNK_BYTES, GROUP, LANES, Packed, Sums, VECTORS},
    ggml::{Q4_K_BYTES, q4_k},
    inputs::{BLOCK, InputBlock, STEPS},
    order::Order,
    storage::Storage,
};

/// Inputs of a block.
const SUPER: usize = 256;
/// Sub-blocks of a block.
pub(super) const SUBS: usize = SUPER / BLOCK;

/// 256 inputs of 32 outputs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct WeightBlock {
    /// Output `16 * v + l` and input `32 * b + 4 * s + i` at `[b][s][v][4 * l + i]` in the low half, the
    /// input 16 further in the high half.
    pub(super) quants: [[[[u8; 4 * LANES]; VECTORS]; STEPS / 2]; SUBS],
    pub(super) sub_scales: [[[u8; LANES]; VECTORS]; SUBS],
    pub(super) sub_mins: [[[u8; LANES]; VECTORS]; SUBS],
    pub(super) scales: [[f32; LANES]; VECTORS],
    pub(super) min_scales: [[f32; LANES]; VECTORS],
}

/// A matrix `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub(super) struct Q4Matrix {
    /// `(groups of 32 outputs, blocks of 256 inputs)`, outputs padded with zeros.
    blocks: Storage<WeightBlock>,
    inputs: usize,
}

impl Q4Matrix {
    /// Quantises `weights`, `(outputs, inputs)`, inputs a multiple of 256, as ggml does.
    pub(super) fn quantize(weights: &[f32], inputs: usize, order: Order) -> Self {
        let outputs = weights.len() / inputs;
        let mut matrix = Self::empty(order.outputs(outputs), inputs);
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let output = order.place(output, outputs);
            if row.iter().all(|value| value.is_finite()) {
                let quantized = Tensor::from_slice(row, inputs, &Device::Cpu)
                    .and_then(|row| QTensor::quantize(&row, GgmlDType::Q4K));
                let bytes = quantized.and_then(|row| row.data().map(std::borrow::Cow::into_owned));
                matrix.set_row(output, &bytes.expect("a row of whole blocks on the CPU"));
            } else {
                // Must not come out as plausible numbers.
                matrix.break_row(output);
            }
        }
        matrix
    }

    /// Takes ggml's blocks of `outputs` rows, each of a multiple of 256 inputs, as they are.
    pub(super) fn from_ggml(bytes: &[u8], outputs: usize, inputs: usize, order: Order) -> Self {
        let mut matrix = Self::empty(order.outputs(outputs), inputs);
        let row_bytes = inputs / SUPER * Q4_K_BYTES;
        for (output, row) in bytes.chunks_exact(row_bytes).enumerate() {
            matrix.set_row(order.place(output, outputs), row);
        }
        matrix
    }

    fn empty(outputs: usize, inputs: usize) -> Self {
        let empty = WeightBlock {
            quants: [[[[0; 4 * LANES]; VECTORS]; STEPS / 2]; SUBS],
            sub_scales: [[[0; LANES]; VECTORS]; SUBS],
            sub_mins: [[[0; LANES]; VECTORS]; SUBS],
            scales: [[0.0; LANES]; VECTORS],
            min_scales: [[0.0; LANES]; VECTORS],
        };
        Self {
            blocks: Storage::filled(empty, outputs.div_ceil(GROUP) * inputs / SUPER),
            inputs,
        }
    }

    fn blocks_per_row(&self) -> usize {
        self.inputs / SUPER
    }

    /// The blocks of `output`'s group.
    fn group_mut(&mut self, output: usize) -> &mut [WeightBlock] {
        let per_row = self.blocks_per_row();
        &mut self.blocks[output / GROUP * per_row..][..per_row]
    }

    fn set_row(&mut self, output: usize, bytes: &[u8]) {
        let (vector, lane) = (output % GROUP / LANES, output % LANES);
        let stored = bytes.as_chunks::<Q4_K_BYTES>().0;
        for (block, bytes) in self.group_mut(output).iter_mut().zip(stored) {
            let from = q4_k(bytes);
            block.scales[vector][lane] = from.scale;
            block.min_scales[vector][lane] = from.min_scale;
            for sub in 0..SUBS {
                block.sub_scales[sub][vector][lane] = from.scales[sub];
                block.sub_mins[sub][vector][lane] = from.mins[sub];
                for i in 0..BLOCK / 2 {
                    let [low, high] = [0, 16].map(|of| from.quants[BLOCK * sub + of + i]);
                    block.quants[sub][i / 4][vector][4 * lane + i % 4] = low | high << 4;
                }
            }
        }
    }

    fn break_row(&mut self, output: usize) {
        let (vector, lane) = (output % GROUP / LANES, output % LANES);
        for block in self.group_mut(output) {
            block.scales[vector][lane] = f32::NAN;
        }
    }

    /// Bytes of the weights.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }

    /// Writes the weights of one output, `(inputs)`.
    pub(super) fn read_row(&self, output: usize, row: &mut [f32]) {
        let (vector, lane) = (output % GROUP / LANES, output % LANES);
        let blocks = &self.blocks[output / GROUP * self.blocks_per_row()..];
        for (values, block) in row.chunks_mut(SUPER).zip(blocks) {
            for (sub, values) in values.chunks_mut(BLOCK).enumerate() {
                let scale =
                    block.scales[vector][lane] * f32::from(block.sub_scales[sub][vector][lane]);
                let min =
                    block.min_scales[vector][lane] * f32::from(block.sub_mins[sub][vector][lane]);
                for (i, value) in values.iter_mut().enumerate() {
                    let byte = block.quants[sub][i % 16 / 4][vector][4 * lane + i % 4];
                    let quant = byte >> (i / 16 * 4) & 15;
                    *value = scale * f32::from(quant) - min;
                }
            }
        }
    }
}

impl Packed for Q4Matrix {
    type Input = InputBlock;

    fn groups(&self) -> usize {
        self.blocks.len() / self.blocks_per_row()
    }

    fn start(&self, group: usize) -> *const i8 {
        self.blocks[group * self.blocks_per_row()..].as_ptr().cast()
    }

    fn row_len(&self) -> usize {
        self.inputs / BLOCK
    }

    fn chunk_len(&self) -> usize {
        let chunks = (self.blocks_per_row() * size_of::<WeightBlock>()).div_ceil(CHUNK_BYTES);
        self.blocks_per_row().div_ceil(chunks) * SUBS
    }

    fn add(
        &self,
        level: Level,
        group: usize,
        chunk: Range<usize>,
        x: &[InputBlock],
        sums: &mut [Sums],
        ahead: Ahead,
    ) {
        let per_row = self.blocks_per_row();
        let blocks = chunk.start / SUBS..chunk.end / SUBS;
        let weights = &self.blocks[group * per_row..][..per_row][blocks.clone()];
        match sums.len() {
            1 => dot::<1>(level, weights, x, blocks, sums, ahead),
            2 => dot::<2>(level, weights, x, blocks, sums, ahead),
            3 => dot::<3>(level, weights, x, blocks, sums, ahead),
            4 => dot::<4>(level, weights, x, blocks, sums, ahead),
            5 => dot::<5>(level, weights, x, blocks, sums, ahead),
            _ => dot::<6>(level, weights, x, blocks, sums, ahead),
        }
    }
}

/// A block's inputs of `ROWS` rows.
pub(super) type Inputs<const ROWS: usize> = [[InputBlock; ROWS]; SUBS];

/// Adds the products of `ROWS` rows of `x`, `(blocks of 32, rows)`, from its blocks of 256 `chunk`, with
/// `weights`.
fn dot<const ROWS: usize>(
    level: Level,
    weights: &[WeightBlock],
    x: &[InputBlock],
    chunk: Range<usize>,
    sums: &mut [Sums],
    ahead: Ahead,
) {
    let x: &[Inputs<ROWS>] = x.as_chunks::<ROWS>().0.as_chunks().0;
    let x = &x[chunk];
    let sums: &mut [Sums; ROWS] = sums.try_into().expect("a sum a row");
    assert_eq!(weights.len(), x.len());
    match level {
        // SAFETY: this level is made only on CPUs with the features that `dot_vnni` enables; the
        // lengths are equal, by the line above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => q4_x86::dot_vnni::<ROWS, LINES>(weights, x, sums, start));
        },
        // SAFETY: as above, with AVX2.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => q4_x86::dot_avx2::<ROWS, LINES>(weights, x, sums, start));
        },
        Level::Baseline => dot_portable(weights, x, sums),
    }
}

fn dot_portable<const ROWS: usize>(
    weights: &[WeightBlock],
    x: &[Inputs<ROWS>],
    sums: &mut [Sums; ROWS],
) {
    for (row, totals) in sums.iter_mut().enumerate() {
        for (vector, total) in totals.iter_mut().enumerate() {
            for (weight, inputs) in weights.iter().zip(x) {
                for (sub, inputs) in inputs.iter().enumerate() {
                    let input = &inputs[row];
                    let mut sums = [0; LANES];
                    for (step, packed) in input.quants.iter().enumerate() {
                        let four = packed.to_le_bytes().map(u8::cast_signed);
                        let quants = &weight.quants[sub][step % 4][vector];
                        for lane in 0..LANES {
                            for i in 0..4 {
                                let quant = quants[4 * lane + i] >> (step / 4 * 4) & 15;
                                sums[lane] += i32::from(quant) * i32::from(four[i]);
                            }
                        }
                    }
                    let factors = |scales: &[[f32; LANES]; VECTORS],
                                   of: &[[u8; LANES]; VECTORS]| {
                        std::array::from_fn::<_, LANES, _>(|lane| {
                            scales[vector][lane] * f32::from(of[vector][lane])
                        })
                    };
                    let scales = factors(&weight.scales, &weight.sub_scales[sub]);
                    let mins = factors(&weight.min_scales, &weight.sub_mins[sub]);
                    for lane in 0..LANES {
                        total[lane] += sums[lane] as f32 * (scales[lane] * input.scale);
                        total[lane] -= mins[lane] * input.sum;
                    }
                }
            }
        }
    }
}
