//! Products of activations with a weight matrix, in one of two compute formats.
//!
//! A row of a product has the same bits whatever the other rows are, however many there are,
//! whatever the number of threads and whatever the CPU: see [`q8`] and [`dense`].

mod dense;
mod q8;
#[cfg(target_arch = "x86_64")]
mod q8_x86;

use std::{fmt, str::FromStr};

use rayon::prelude::*;
use thiserror::Error;

use self::{
    dense::DenseMatrix,
    q8::{InputBlock, LANES, Q8Matrix},
};
use speculation::simd::Level;

/// How weights are held and multiplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WeightFormat {
    /// 8-bit blocks of 32 with a half-precision scale, activations likewise; a quarter of the
    /// memory traffic of [`WeightFormat::F32`], which is what decoding costs.
    #[default]
    Q8_0,
    /// Full precision.
    F32,
}

impl WeightFormat {
    /// Both formats.
    pub const ALL: [Self; 2] = [Self::Q8_0, Self::F32];

    /// The name in configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Q8_0 => "q8_0",
            Self::F32 => "f32",
        }
    }

    /// Names the arithmetic, for the numerics fingerprint. To be changed with every change of a
    /// kernel that changes a bit.
    pub(crate) fn kernel_family(self) -> &'static str {
        match self {
            Self::Q8_0 => "outrider-q8_0-x32-v1",
            Self::F32 => "outrider-f32-x2-v1",
        }
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for WeightFormat {
    type Err = UnknownWeightFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| UnknownWeightFormat(name.to_owned()))
    }
}

/// No weight format has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no weight format {0:?}: q8_0 and f32 are known")]
pub struct UnknownWeightFormat(pub String);

/// Multiply-adds below which a product stays on the calling thread: waking another costs about as
/// much as this many take.
const PARALLEL_WORK: usize = 16 << 20;

/// A linear layer: `y = W x + b`, W of shape `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    matrix: Matrix,
    bias: Option<Vec<f32>>,
    inputs: usize,
    outputs: usize,
}

#[derive(Clone, Debug)]
enum Matrix {
    Q8(Q8Matrix),
    Dense(DenseMatrix),
}

/// Buffers that products reuse.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinearScratch {
    quantized: Vec<InputBlock>,
}

/// Activations as the kernel of the format reads them.
#[derive(Clone, Copy)]
enum Activations<'a> {
    Q8(&'a Q8Matrix, &'a [InputBlock]),
    Dense(&'a DenseMatrix, &'a [f32]),
}

impl Linear {
    /// Takes `weights`, `(outputs, inputs)`, and `bias`, `(outputs)`.
    pub(crate) fn new(
        weights: &[f32],
        bias: Option<Vec<f32>>,
        inputs: usize,
        format: WeightFormat,
    ) -> Self {
        let outputs = weights.len() / inputs;
        let matrix = match format {
            WeightFormat::Q8_0 => Matrix::Q8(Q8Matrix::quantize(weights, inputs)),
            WeightFormat::F32 => Matrix::Dense(DenseMatrix::interleave(weights, inputs)),
        };
        Self {
            matrix,
            bias,
            inputs,
            outputs,
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Writes the weights of output `output`, `(inputs)`, as they are held: an embedding look-up.
    pub(crate) fn read_row(&self, output: usize, row: &mut [f32]) {
        match &self.matrix {
            Matrix::Q8(matrix) => matrix.read_row(output, row),
            Matrix::Dense(matrix) => matrix.read_row(output, row),
        }
    }

    /// Writes the products of `x`, `(rows, inputs)`, to `y`, `(rows, outputs)`.
    pub(crate) fn forward(
        &self,
        level: Level,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut LinearScratch,
    ) {
        debug_assert_eq!(x.len() / self.inputs, y.len() / self.outputs);
        if x.is_empty() {
            return;
        }
        let activations = match &self.matrix {
            Matrix::Q8(matrix) => {
                matrix.quantize_inputs(level, x, &mut scratch.quantized);
                Activations::Q8(matrix, &scratch.quantized)
            }
            Matrix::Dense(matrix) => Activations::Dense(matrix, x),
        };
        let groups = self.outputs.div_ceil(LANES);
        let threads = if x.len() * self.outputs < PARALLEL_WORK {
            1
        } else {
            rayon::current_num_threads().min(groups)
        };
        if threads == 1 {
            let mut rows: Vec<&mut [f32]> = y.chunks_exact_mut(self.outputs).collect();
            self.groups(level, activations, 0, &mut rows);
            return;
        }
        let width = groups.div_ceil(threads) * LANES;
        columns(y, self.outputs, width)
            .into_par_iter()
            .enumerate()
            .for_each(|(part, mut rows)| {
                self.groups(level, activations, part * width, &mut rows);
            });
    }

    /// Computes the outputs from `first` on, a multiple of 16, into `rows`: a slice for each row of
    /// the activations, as long as there are outputs to be computed.
    fn groups(&self, level: Level, x: Activations<'_>, first: usize, rows: &mut [&mut [f32]]) {
        let outputs = rows[0].len();
        for start in (0..outputs).step_by(LANES) {
            let end = outputs.min(start + LANES);
            let bias = self
                .bias
                .as_ref()
                .map(|bias| &bias[first + start..first + end]);
            let write = |row: usize, results: &[f32; LANES]| {
                let y = &mut rows[row][start..end];
                y.copy_from_slice(&results[..end - start]);
                if let Some(bias) = bias {
                    y.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
                }
            };
            let group = (first + start) / LANES;
            match x {
                Activations::Q8(matrix, x) => matrix.product(level, group, x, write),
                Activations::Dense(matrix, x) => matrix.product(level, group, x, write),
            }
        }
    }
}

/// Cuts `y`, `(rows, outputs)`, into column ranges of `width`: for each, its part of every row.
fn columns(y: &mut [f32], outputs: usize, width: usize) -> Vec<Vec<&mut [f32]>> {
    let mut parts: Vec<Vec<&mut [f32]>> = Vec::new();
    parts.resize_with(outputs.div_ceil(width), Vec::new);
    for row in y.chunks_exact_mut(outputs) {
        for (part, range) in parts.iter_mut().zip(row.chunks_mut(width)) {
            part.push(range);
        }
    }
    parts
}

#[cfg(test)]
mod tests;
