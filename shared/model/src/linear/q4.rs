//! Q4_K: blocks of 256 inputs in eight sub-blocks of 32 4-bit numbers, each with a scale and a minimum
//! of 6 bits, as in GGUF, laid out for reading once.
//!
//! The layout is that of [`super::q8`], with two steps in a vector: one in the low halves of the bytes,
//! one in the high ones. A weight is `scale * quant - min`, so a sub-block's product is `scale` times a
//! sum of integers, which is exact, less `min` times the sum of the activations, which is known
//! beforehand. Over sub-blocks both are added in f32, by fused multiply-adds in the order of the inputs: so a
//! result depends neither on the other rows nor on the instruction set.

mod quantize;

use std::ops::Range;

use speculation::simd::{Kernel, Level};

use self::quantize::quantize;
use super::{
    block::{LANES, OutputSums, PackedBlock, VECTORS},
    ggml::{Q4KBlock, q4_k},
    inputs::{BLOCK, InputBlock, STEPS},
    mapped::PlainBlock,
    rows::RowPart,
};

/// Inputs of a block.
const SUPER: usize = 256;
/// Sub-blocks of a block.
pub(super) const SUBS: usize = SUPER / BLOCK;

/// 256 inputs of 32 outputs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Q4Block {
    /// Output `16 * v + l` and input `32 * b + 4 * s + i` at `[b][s][v][4 * l + i]` in the low half, the
    /// input 16 further in the high half.
    pub(super) quants: [[[[u8; 4 * LANES]; VECTORS]; STEPS / 2]; SUBS],
    pub(super) sub_scales: [[[u8; LANES]; VECTORS]; SUBS],
    pub(super) sub_mins: [[[u8; LANES]; VECTORS]; SUBS],
    pub(super) scales: [[f32; LANES]; VECTORS],
    pub(super) min_scales: [[f32; LANES]; VECTORS],
}

// SAFETY: integers and f32; the sizes add up.
unsafe impl PlainBlock for Q4Block {}
const _: () = assert!(size_of::<Q4Block>() == 32 * (128 + 8 + 8 + 4 + 4));

/// A block's inputs of `ROWS` rows.
pub(super) type Q4Inputs<const ROWS: usize> = [[InputBlock; ROWS]; SUBS];

impl Q4Block {
    #[inline(always)]
    fn set(&mut self, output: usize, from: &Q4KBlock) {
        let (vector, lane) = (output / LANES, output % LANES);
        self.scales[vector][lane] = from.scale;
        self.min_scales[vector][lane] = from.min_scale;
        for sub in 0..SUBS {
            self.sub_scales[sub][vector][lane] = from.scales[sub];
            self.sub_mins[sub][vector][lane] = from.mins[sub];
            let (fours, _) = from.pairs[sub].as_chunks::<4>();
            for (step, four) in self.quants[sub].iter_mut().zip(fours) {
                step[vector].as_chunks_mut::<4>().0[lane] = *four;
            }
        }
    }
}

/// Brings some inputs of `output`, whole blocks of them, to as many blocks: numbers as ggml quantises them.
pub(super) fn pack(level: Level, blocks: &mut [Q4Block], output: usize, row: RowPart<'_>) {
    level.run(PackRow {
        blocks,
        output,
        row,
    });
}

struct PackRow<'a> {
    blocks: &'a mut [Q4Block],
    output: usize,
    row: RowPart<'a>,
}

impl Kernel for PackRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.row {
            RowPart::Numbers(row) => {
                for (block, values) in self.blocks.iter_mut().zip(row.as_chunks().0) {
                    block.set(self.output, &quantize(values));
                }
            }
            RowPart::Blocks(row) => {
                for (block, stored) in self.blocks.iter_mut().zip(row.as_chunks().0) {
                    block.set(self.output, &q4_k(stored));
                }
            }
        }
    }
}

impl PackedBlock for Q4Block {
    type Input = InputBlock;
    type Inputs<'a, const ROWS: usize> = &'a [Q4Inputs<ROWS>];
    const INPUTS: usize = SUPER;
    const STEPS: usize = SUBS;
    const EMPTY: Self = Self {
        quants: [[[[0; 4 * LANES]; VECTORS]; STEPS / 2]; SUBS],
        sub_scales: [[[0; LANES]; VECTORS]; SUBS],
        sub_mins: [[[0; LANES]; VECTORS]; SUBS],
        scales: [[0.0; LANES]; VECTORS],
        min_scales: [[0.0; LANES]; VECTORS],
    };

    fn read(&self, output: usize, values: &mut [f32]) {
        let (vector, lane) = (output / LANES, output % LANES);
        for (sub, values) in values.chunks_mut(BLOCK).enumerate() {
            let scale = self.scales[vector][lane] * f32::from(self.sub_scales[sub][vector][lane]);
            let min = self.min_scales[vector][lane] * f32::from(self.sub_mins[sub][vector][lane]);
            for (i, value) in values.iter_mut().enumerate() {
                let byte = self.quants[sub][i % 16 / 4][vector][4 * lane + i % 4];
                let quant = byte >> (i / 16 * 4) & 15;
                *value = scale * f32::from(quant) - min;
            }
        }
    }

    /// `x` is `(blocks of 32, rows)`.
    fn inputs<const ROWS: usize>(x: &[InputBlock], chunk: Range<usize>) -> &[Q4Inputs<ROWS>] {
        &x.as_chunks().0.as_chunks().0[chunk]
    }

    fn dot_portable<const ROWS: usize>(
        weights: &[Self],
        x: &[Q4Inputs<ROWS>],
        sums: &mut [OutputSums; ROWS],
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
                        let factors =
                            |scales: &[[f32; LANES]; VECTORS], of: &[[u8; LANES]; VECTORS]| {
                                std::array::from_fn::<_, LANES, _>(|lane| {
                                    scales[vector][lane] * f32::from(of[vector][lane])
                                })
                            };
                        let scales = factors(&weight.scales, &weight.sub_scales[sub]);
                        let mins = factors(&weight.min_scales, &weight.sub_mins[sub]);
                        for lane in 0..LANES {
                            let scale = scales[lane] * input.scale;
                            let with = scale.mul_add(sums[lane] as f32, total[lane]);
                            total[lane] = input.sum.mul_add(-mins[lane], with);
                        }
                    }
                }
            }
        }
    }
}
