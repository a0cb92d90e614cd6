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
use speculation::simd::{Kernel, Level};

use super::{
    block::{LANES, OutputSums, PackedBlock, VECTORS},
    ggml,
    inputs::{BLOCK, InputBlock, STEPS, quantize_block},
    mapped::PlainBlock,
    rows::RowPart,
};

/// 32 inputs of 32 outputs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Q8Block {
    /// The weight of output `16 * v + l` and input `4 * s + i` at `[s][v][4 * l + i]`, with 128 added.
    pub(super) quants: [[[u8; 4 * LANES]; VECTORS]; STEPS],
    /// As files have them: products wait for memory, so what is read is kept small.
    pub(super) scales: [[f16; LANES]; VECTORS],
}

// SAFETY: integers and f16, which takes any bits; the sizes add up.
unsafe impl PlainBlock for Q8Block {}
const _: () = assert!(size_of::<Q8Block>() == 32 * (32 + 2));

impl Q8Block {
    /// `quants` have 128 added.
    #[inline(always)]
    fn set(&mut self, output: usize, scale: f16, quants: &[u8; BLOCK]) {
        let (vector, lane) = (output / LANES, output % LANES);
        self.scales[vector][lane] = scale;
        let (fours, _) = quants.as_chunks::<4>();
        for (step, four) in self.quants.iter_mut().zip(fours) {
            step[vector].as_chunks_mut::<4>().0[lane] = *four;
        }
    }
}

/// Brings some inputs of `output` to as many blocks.
pub(super) fn pack(level: Level, blocks: &mut [Q8Block], output: usize, row: RowPart<'_>) {
    level.run(PackRow {
        blocks,
        output,
        row,
    });
}

struct PackRow<'a> {
    blocks: &'a mut [Q8Block],
    output: usize,
    row: RowPart<'a>,
}

impl Kernel for PackRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.row {
            RowPart::Numbers(row) => {
                for (block, values) in self.blocks.iter_mut().zip(row.chunks(BLOCK)) {
                    let (scale, quants) = quantize_block(values);
                    let quants = quants.map(|quant| (quant + 128) as u8);
                    block.set(self.output, f16::from_f32(scale), &quants);
                }
            }
            RowPart::Blocks(row) => {
                for (block, stored) in self.blocks.iter_mut().zip(row.as_chunks().0) {
                    let (scale, quants) = ggml::q8_0(stored);
                    block.set(self.output, scale, &quants);
                }
            }
        }
    }
}

impl PackedBlock for Q8Block {
    type Input = InputBlock;
    type Inputs<'a, const ROWS: usize> = &'a [[InputBlock; ROWS]];
    const INPUTS: usize = BLOCK;
    const STEPS: usize = 1;
    const EMPTY: Self = Self {
        quants: [[[128; 4 * LANES]; VECTORS]; STEPS],
        scales: [[f16::ZERO; LANES]; VECTORS],
    };

    fn read(&self, output: usize, values: &mut [f32]) {
        let (vector, lane) = (output / LANES, output % LANES);
        for (i, value) in values.iter_mut().enumerate() {
            let quant = i16::from(self.quants[i / 4][vector][4 * lane + i % 4]) - 128;
            *value = f32::from(quant) * self.scales[vector][lane].to_f32();
        }
    }

    /// `x` is `(blocks, rows)`.
    fn inputs<const ROWS: usize>(x: &[InputBlock], chunk: Range<usize>) -> &[[InputBlock; ROWS]] {
        &x.as_chunks().0[chunk]
    }

    fn dot_portable<const ROWS: usize>(
        weights: &[Self],
        x: &[[InputBlock; ROWS]],
        sums: &mut [OutputSums; ROWS],
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
}
