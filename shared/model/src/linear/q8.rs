//! Q8_0: blocks of 32 signed bytes with one half-precision scale, as in GGUF, laid out for reading
//! once.
//!
//! Outputs stand interleaved, four consecutive inputs of each at a time, so that a vector
//! holds sixteen independent results and one pass over the weights serves several activation rows.
//! Activations are quantised the same way, a scale for each 32. Within a block sums are integers,
//! hence exact in any order; across blocks they are added in f32 in the order of the inputs. So a
//! result depends neither on the other rows nor on the instruction set.

use std::ops::Range;

use half::f16;
use speculation::simd::Level;

#[cfg(target_arch = "x86_64")]
use super::q8_x86;
use super::{
    blocked::{Ahead, CHUNK_BYTES, GROUP, LANES, Packed, Sums, VECTORS},
    ggml,
    inputs::{BLOCK, InputBlock, STEPS, quantize_block},
    order::Order,
    storage::Storage,
};

/// 32 inputs of 32 outputs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct WeightBlock {
    /// The weight of output `16 * v + l` and input `4 * s + i` at `[s][v][4 * l + i]`, with 128 added.
    pub(super) quants: [[[u8; 4 * LANES]; VECTORS]; STEPS],
    /// As files have them: products wait for memory, so what is read is kept small.
    pub(super) scales: [[f16; LANES]; VECTORS],
}

/// A matrix `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub(super) struct Q8Matrix {
    /// `(groups of 32 outputs, blocks of 32 inputs)`, both padded with zeros.
    blocks: Storage<WeightBlock>,
    inputs: usize,
}

impl Q8Matrix {
    /// Quantises `weights`, `(outputs, inputs)`.
    pub(super) fn quantize(weights: &[f32], inputs: usize, order: Order) -> Self {
        let outputs = weights.len() / inputs;
        let mut matrix = Self::empty(order.outputs(outputs), inputs);
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let output = order.place(output, outputs);
            for (index, values) in row.chunks(BLOCK).enumerate() {
                let (scale, quants) = quantize_block(values);
                matrix.set(output, index, f16::from_f32(scale), quants);
            }
        }
        matrix
    }

    /// Takes ggml's blocks of `outputs` rows, each of a multiple of 32 inputs, as they are.
    pub(super) fn from_ggml(bytes: &[u8], outputs: usize, inputs: usize, order: Order) -> Self {
        let mut matrix = Self::empty(order.outputs(outputs), inputs);
        let row_bytes = inputs / BLOCK * ggml::Q8_0_BYTES;
        for (output, row) in bytes.chunks_exact(row_bytes).enumerate() {
            let output = order.place(output, outputs);
            let blocks = row.as_chunks::<{ ggml::Q8_0_BYTES }>().0;
            for (index, block) in blocks.iter().enumerate() {
                let (scale, quants) = ggml::q8_0(block);
                matrix.set(output, index, scale, quants);
            }
        }
        matrix
    }

    fn empty(outputs: usize, inputs: usize) -> Self {
        let empty = WeightBlock {
            quants: [[[128; 4 * LANES]; VECTORS]; STEPS],
            scales: [[f16::ZERO; LANES]; VECTORS],
        };
        let blocks = outputs.div_ceil(GROUP) * inputs.div_ceil(BLOCK);
        Self {
            blocks: Storage::filled(empty, blocks),
            inputs,
        }
    }

    /// Writes block `index` of one output.
    fn set(&mut self, output: usize, index: usize, scale: f16, quants: [i32; BLOCK]) {
        let position = output / GROUP * self.blocks_per_row() + index;
        let (vector, lane) = (output % GROUP / LANES, output % LANES);
        let block = &mut self.blocks[position];
        block.scales[vector][lane] = scale;
        for (i, quant) in quants.into_iter().enumerate() {
            block.quants[i / 4][vector][4 * lane + i % 4] = (quant + 128) as u8;
        }
    }

    fn blocks_per_row(&self) -> usize {
        self.inputs.div_ceil(BLOCK)
    }

    /// Bytes of the weights.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }

    /// Writes the weights of one output, `(inputs)`.
    pub(super) fn read_row(&self, output: usize, row: &mut [f32]) {
        let (vector, lane) = (output % GROUP / LANES, output % LANES);
        let blocks = &self.blocks[output / GROUP * self.blocks_per_row()..];
        for (values, block) in row.chunks_mut(BLOCK).zip(blocks) {
            for (i, value) in values.iter_mut().enumerate() {
                let quant = i16::from(block.quants[i / 4][vector][4 * lane + i % 4]) - 128;
                *value = f32::from(quant) * block.scales[vector][lane].to_f32();
            }
        }
    }
}

impl Packed for Q8Matrix {
    type Input = InputBlock;

    fn groups(&self) -> usize {
        self.blocks.len() / self.blocks_per_row()
    }

    fn start(&self, group: usize) -> *const i8 {
        self.blocks[group * self.blocks_per_row()..].as_ptr().cast()
    }

    fn row_len(&self) -> usize {
        self.blocks_per_row()
    }

    fn chunk_len(&self) -> usize {
        let chunks = (self.blocks_per_row() * size_of::<WeightBlock>()).div_ceil(CHUNK_BYTES);
        self.blocks_per_row().div_ceil(chunks)
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
        let weights = &self.blocks[group * per_row..][..per_row][chunk.clone()];
        match sums.len() {
            1 => dot::<1>(level, weights, x, chunk, sums, ahead),
            2 => dot::<2>(level, weights, x, chunk, sums, ahead),
            3 => dot::<3>(level, weights, x, chunk, sums, ahead),
            4 => dot::<4>(level, weights, x, chunk, sums, ahead),
            5 => dot::<5>(level, weights, x, chunk, sums, ahead),
            _ => dot::<6>(level, weights, x, chunk, sums, ahead),
        }
    }
}

/// Adds the products of `ROWS` rows of `x`, `(blocks, rows)`, from its blocks `chunk`, with `weights`.
fn dot<const ROWS: usize>(
    level: Level,
    weights: &[WeightBlock],
    x: &[InputBlock],
    chunk: Range<usize>,
    sums: &mut [Sums],
    ahead: Ahead,
) {
    let x = &x.as_chunks::<ROWS>().0[chunk];
    let sums: &mut [Sums; ROWS] = sums.try_into().expect("a sum a row");
    assert_eq!(weights.len(), x.len());
    match level {
        // SAFETY: this level is made only on CPUs with the features that `dot_vnni` enables; the
        // lengths are equal, by the line above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => q8_x86::dot_vnni::<ROWS, LINES>(weights, x, sums, start));
        },
        // SAFETY: as above, with AVX2 and F16C.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => q8_x86::dot_avx2::<ROWS, LINES>(weights, x, sums, start));
        },
        Level::Baseline => dot_portable(weights, x, sums),
    }
}

fn dot_portable<const ROWS: usize>(
    weights: &[WeightBlock],
    x: &[[InputBlock; ROWS]],
    sums: &mut [Sums; ROWS],
) {
    for (row, totals) in sums.iter_mut().enumerate() {
        for (vector, total) in totals.iter_mut().enumerate() {
            for (weight, inputs) in weights.iter().zip(x) {
                let input = &inputs[row];
                let scales = weight.scales[vector].map(f16::to_f32);
                let mut sums = [input.offset; LANES];
                for (quants, packed) in weight.quants.iter().zip(input.quants) {
                    let four = packed.to_le_bytes().map(u8::cast_signed);
                    for lane in 0..LANES {
                        for i in 0..4 {
                            let quant = quants[vector][4 * lane + i];
                            sums[lane] += i32::from(quant) * i32::from(four[i]);
                        }
                    }
                }
                for lane in 0..LANES {
                    total[lane] += sums[lane] as f32 * (scales[lane] * input.scale);
                }
            }
        }
    }
}
