//! From the rows of a matrix to the blocks that it is multiplied in, shared among threads.

use std::{ops::Range, sync::Arc};

use candle_core::quantized::GgmlDType;
use memmap2::Mmap;

use super::{
    Linear, OutputOrder, PackedMatrix, WeightFormat, dense, ggml,
    packed::Packed,
    q4, q8,
    rows::{GivenBlocks, GivenRows, MatrixRows},
};
use crate::cpu::Cpu;

impl Linear {
    /// Takes `weights`, `(outputs, inputs)`, and `bias`, `(outputs)`.
    pub fn new(
        weights: &[f32],
        bias: Option<Vec<f32>>,
        inputs: usize,
        format: WeightFormat,
    ) -> Self {
        Self::in_order(OutputOrder::AsGiven, weights, bias, inputs, format)
    }

    /// [`Linear::new`] with the outputs in `order`.
    pub(crate) fn in_order(
        order: OutputOrder,
        weights: &[f32],
        bias: Option<Vec<f32>>,
        inputs: usize,
        format: WeightFormat,
    ) -> Self {
        let shape = [weights.len() / inputs, inputs];
        let rows = GivenRows { weights, inputs };
        Self::of_rows(&Cpu::detect(), order, shape, &rows, bias, format)
    }

    /// Takes the rows of a matrix of the shape `(outputs, inputs)`, which may be ggml's blocks only where that is the
    /// matrix's format, and `bias`, `(outputs)`. What `cpu` says changes no bit.
    pub(crate) fn of_rows(
        cpu: &Cpu,
        order: OutputOrder,
        shape: [usize; 2],
        rows: &impl MatrixRows,
        bias: Option<Vec<f32>>,
        format: WeightFormat,
    ) -> Self {
        let [outputs, inputs] = shape;
        let (threads, level) = (&*cpu.threads, cpu.level);
        let matrix = match format.of_rows(inputs) {
            WeightFormat::Q4_K => PackedMatrix::Q4(Packed::new(
                threads,
                order,
                shape,
                rows,
                |to, output, row| {
                    q4::pack(level, to, output, row);
                },
            )),
            WeightFormat::Q8_0 => PackedMatrix::Q8(Packed::new(
                threads,
                order,
                shape,
                rows,
                |to, output, row| {
                    q8::pack(level, to, output, row);
                },
            )),
            WeightFormat::F32 => PackedMatrix::Dense(Packed::new(
                threads,
                order,
                shape,
                rows,
                |to, output, row| {
                    dense::pack(to, output, &row);
                },
            )),
        };
        Self::of(matrix, bias, order, outputs, inputs)
    }

    /// `bias` is in the order in which outputs were given.
    fn of(
        matrix: PackedMatrix,
        bias: Option<Vec<f32>>,
        order: OutputOrder,
        given: usize,
        inputs: usize,
    ) -> Self {
        let outputs = order.outputs(given);
        let placed = |bias: Vec<f32>| {
            let mut placed = vec![0.0; outputs];
            for (output, bias) in bias.into_iter().enumerate() {
                placed[order.place(output, given)] = bias;
            }
            placed
        };
        Self {
            matrix,
            bias: bias.map(placed),
            inputs,
            outputs,
            order,
        }
    }

    /// Takes ggml's blocks in Q8_0 or Q4_K as they are, `(outputs, inputs)`, and `bias`, `(outputs)`. `None` if they
    /// are in another format or not as many bytes as that takes, or rows are no whole blocks.
    pub fn from_ggml(
        order: OutputOrder,
        format: GgmlDType,
        bytes: &[u8],
        bias: Option<Vec<f32>>,
        outputs: usize,
        inputs: usize,
    ) -> Option<Self> {
        if ggml::matrix_bytes(format, outputs, inputs) != Some(bytes.len()) {
            return None;
        }
        let same = match format {
            GgmlDType::Q8_0 => WeightFormat::Q8_0,
            GgmlDType::Q4K => WeightFormat::Q4_K,
            _ => return None,
        };
        let rows = GivenBlocks {
            bytes,
            row: bytes.len() / outputs,
            block: (format.block_size(), format.type_size()),
        };
        let (cpu, shape) = (Cpu::detect(), [outputs, inputs]);
        Some(Self::of_rows(&cpu, order, shape, &rows, bias, same))
    }

    /// Takes a matrix of this shape that was packed before, in the bytes `range` of `map`, and `bias` as it was given
    /// then. `None` if they are not the bytes of such a matrix.
    pub(crate) fn mapped(
        order: OutputOrder,
        shape: [usize; 2],
        bias: Option<Vec<f32>>,
        format: WeightFormat,
        map: &Arc<Mmap>,
        range: Range<usize>,
    ) -> Option<Self> {
        let [outputs, inputs] = shape;
        let matrix = match format.of_rows(inputs) {
            WeightFormat::Q4_K => PackedMatrix::Q4(Packed::mapped(order, shape, map, range)?),
            WeightFormat::Q8_0 => PackedMatrix::Q8(Packed::mapped(order, shape, map, range)?),
            WeightFormat::F32 => PackedMatrix::Dense(Packed::mapped(order, shape, map, range)?),
        };
        Some(Self::of(matrix, bias, order, outputs, inputs))
    }

    /// The weights as they stand in memory, for [`Linear::mapped`].
    pub(crate) fn packed_bytes(&self) -> &[u8] {
        packed!(&self.matrix, matrix => matrix.as_bytes())
    }
}
