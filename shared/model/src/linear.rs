//! Products of activations with a weight matrix, in one of three compute formats.
//!
//! A row of a product has the same bits whatever the other rows are, however many there are,
//! whatever the number of threads and whatever the CPU: see [`q8`], [`q4`] and [`dense`].

#[cfg(target_arch = "x86_64")]
#[macro_use]
mod x86;

/// `body` with the matrix of whatever format.
macro_rules! packed {
    ($of:expr, $matrix:ident => $body:expr) => {
        match $of {
            PackedMatrix::Q8($matrix) => $body,
            PackedMatrix::Q4($matrix) => $body,
            PackedMatrix::Dense($matrix) => $body,
        }
    };
}

mod activations;
mod ahead;
mod block;
mod blocked;
mod dense;
#[cfg(target_arch = "x86_64")]
mod dense_x86;
mod format;
mod ggml;
mod inputs;
mod mapped;
mod order;
mod packed;
mod packing;
mod q4;
#[cfg(target_arch = "x86_64")]
mod q4_x86;
mod q8;
#[cfg(target_arch = "x86_64")]
mod q8_x86;
mod rows;
mod shares;
mod slab;
mod storage;

pub(crate) use self::{
    activations::{Activations, ActivationsWriter},
    blocked::Computed,
    inputs::{BLOCK as QUANT_BLOCK, InputBlock, quantize_block},
    mapped::LAYOUT,
    order::GROUP,
    rows::{MatrixRows, RowPart},
    storage::Storage,
};
use self::{
    block::Wide,
    blocked::{ProductOutput, multiply},
    inputs::quantize_rows,
    packed::Packed,
    shares::Shares,
};
pub use self::{
    format::{UnknownWeightFormat, WeightFormat},
    order::OutputOrder,
};
use crate::cpu::Cpu;

/// Multiply-adds below which a product stays on the calling thread: what handing a part over costs.
const PARALLEL_WORK: usize = 64 << 10;

/// A linear layer: `y = W x + b`, W of shape `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub struct Linear {
    matrix: PackedMatrix,
    bias: Option<Vec<f32>>,
    inputs: usize,
    /// What pads an [`OutputOrder`] included.
    outputs: usize,
    order: OutputOrder,
}

#[derive(Clone, Debug)]
enum PackedMatrix {
    Q8(Packed<q8::Q8Block>),
    Q4(Packed<q4::Q4Block>),
    Dense(Packed<dense::DenseWeights>),
}

/// Buffers that products reuse.
#[derive(Clone, Debug, Default)]
pub struct LinearScratch {
    quantized: Vec<InputBlock>,
}

impl Linear {
    /// Returns the length of a row that it is multiplied with.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the length of a row that comes out.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Bytes of the weights, what pads them included.
    pub fn bytes(&self) -> usize {
        packed!(&self.matrix, matrix => matrix.bytes())
    }

    /// Writes the weights of output `output`, `(inputs)`, as they are held: an embedding look-up.
    pub(crate) fn read_row(&self, output: usize, row: &mut [f32]) {
        packed!(&self.matrix, matrix => matrix.read_row(output, row));
    }

    /// Writes the products of `x`, `(rows, inputs)`, to `y`, `(rows, outputs)`.
    pub fn forward(&self, cpu: &Cpu, x: &[f32], y: &mut [f32], scratch: &mut LinearScratch) {
        self.forward_before(None, cpu, x, y, scratch);
    }

    /// The same, where the product with `next` is likely to come next: its first weights are asked for when
    /// these are read.
    pub fn forward_before(
        &self,
        next: Option<&Self>,
        cpu: &Cpu,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut LinearScratch,
    ) {
        self.forward_then(next, cpu, x, y, scratch, |_| ());
    }

    /// The same, where `after` is called for all groups of 32 outputs, for some at a time, by the thread that
    /// has computed them.
    pub(crate) fn forward_then(
        &self,
        next: Option<&Self>,
        cpu: &Cpu,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut LinearScratch,
        after: impl Fn(Computed<'_>) + Sync,
    ) {
        debug_assert_eq!(x.len() / self.inputs, y.len() / self.outputs);
        let blocks = &mut scratch.quantized;
        match &self.matrix {
            PackedMatrix::Q8(matrix) => {
                quantize_rows(cpu, x, self.inputs, blocks);
                self.product(next, cpu, matrix, blocks, y, after);
            }
            PackedMatrix::Q4(matrix) => {
                quantize_rows(cpu, x, self.inputs, blocks);
                self.product(next, cpu, matrix, blocks, y, after);
            }
            PackedMatrix::Dense(matrix) => self.product(next, cpu, matrix, x, y, after),
        }
    }

    /// The same as [`Linear::forward_before`] of activations that were written for this matrix.
    pub(crate) fn forward_activations(
        &self,
        next: Option<&Self>,
        cpu: &Cpu,
        x: &Activations,
        y: &mut [f32],
    ) {
        debug_assert_eq!(x.rows(), y.len() / self.outputs);
        match &self.matrix {
            PackedMatrix::Q8(matrix) => self.product(next, cpu, matrix, &x.blocks, y, |_| ()),
            PackedMatrix::Q4(matrix) => self.product(next, cpu, matrix, &x.blocks, y, |_| ()),
            PackedMatrix::Dense(matrix) => self.product(next, cpu, matrix, &x.values, y, |_| ()),
        }
    }

    /// Shares a product of all rows of `x` among the threads, each a range of outputs.
    fn product<B: Wide>(
        &self,
        next: Option<&Self>,
        cpu: &Cpu,
        matrix: &Packed<B>,
        x: &[B::Input],
        y: &mut [f32],
        after: impl Fn(Computed<'_>) + Sync,
    ) {
        if x.is_empty() {
            return;
        }
        // Each row has as many results as there are outputs.
        let threads = if y.len() * self.inputs < PARALLEL_WORK {
            1
        } else {
            cpu.threads.count()
        };
        let output = ProductOutput::new(y, self.outputs, self.bias.as_deref());
        let shares = self.shares(matrix, threads);
        cpu.threads.each(shares.parts, &|part| {
            let range = shares.groups(part);
            let ends = shares.share_that_ends_with(part);
            let then = ends
                .zip(next)
                .map(|(share, next)| next.start(share, threads));
            // SAFETY: the ranges do not overlap, and each is one part's, which writes it here.
            let computed = unsafe {
                multiply(matrix, cpu.level, range.clone(), x, output, then);
                Computed::new(output, range)
            };
            after(computed);
        });
    }

    /// How the groups of `matrix`, which is this one's, are shared among threads.
    fn shares<B: Wide>(&self, matrix: &Packed<B>, threads: usize) -> Shares {
        Shares::new(matrix.groups(), self.order.inseparable(), threads)
    }

    /// Where the first of the weights stand that are thread `share`'s of `threads`.
    fn start(&self, share: usize, threads: usize) -> *const i8 {
        packed!(&self.matrix, matrix => {
            let shares = self.shares(matrix, threads);
            matrix.start(shares.groups(shares.first(share)).start)
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
