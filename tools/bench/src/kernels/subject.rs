//! The matrix that is measured, as our kernels hold it and as candle's do.

use anyhow::Context;
use candle_core::quantized::GgmlDType;
use model::{Cpu, Linear, LinearScratch, OutputOrder, WeightFormat};

use super::candle::{CandleInputs, CandleMatrix};

/// Inputs of every matrix.
pub(super) const INPUTS: usize = 2048;

/// A matrix, and what products with it need.
pub(super) struct KernelSubject {
    format: WeightFormat,
    outputs: usize,
    ours: Linear,
    cpu: Cpu,
    scratch: LinearScratch,
    candle: Option<CandleMatrix>,
    x: Vec<f32>,
    y: Vec<f32>,
}

impl KernelSubject {
    /// A matrix of about `bytes` bytes. All outputs are alike: what numbers are multiplied makes no
    /// difference to the time.
    ///
    /// # Errors
    /// If candle refuses it.
    pub(super) fn new(
        format: WeightFormat,
        bytes: usize,
        with_candle: bool,
    ) -> anyhow::Result<Self> {
        // Bits of a weight as our kernels hold it.
        let (ggml, bits) = match format {
            WeightFormat::Q8_0 => (Some(GgmlDType::Q8_0), 8.5),
            WeightFormat::Q4_K => (Some(GgmlDType::Q4K), 4.75),
            WeightFormat::F32 => (None, 32.0),
        };
        let outputs = (bytes as f64 * 8.0 / bits / INPUTS as f64 / 32.0).round() as usize * 32;
        let (ours, candle) = if let Some(ggml) = ggml {
            let weights = blocks(ggml, outputs);
            let ours =
                Linear::from_ggml(OutputOrder::AsGiven, ggml, &weights, None, outputs, INPUTS)
                    .context("the blocks do not make up the matrix")?;
            let candle =
                with_candle.then(|| CandleMatrix::from_ggml(ggml, weights, outputs, INPUTS));
            (ours, candle)
        } else {
            let weights = numbers(INPUTS).repeat(outputs);
            let ours = Linear::new(&weights, None, INPUTS, format);
            let candle = with_candle.then(|| CandleMatrix::new(weights, INPUTS));
            (ours, candle)
        };
        Ok(Self {
            format,
            outputs,
            ours,
            cpu: Cpu::detect(),
            scratch: LinearScratch::default(),
            candle: candle.transpose().context("candle")?,
            x: Vec::new(),
            y: Vec::new(),
        })
    }

    pub(super) fn format(&self) -> WeightFormat {
        self.format
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Bytes of the weights as our kernels hold them.
    pub(super) fn bytes(&self) -> usize {
        self.ours.bytes()
    }

    pub(super) fn has_candle(&self) -> bool {
        self.candle.is_some()
    }

    /// The product with `rows` rows, by our kernel.
    pub(super) fn ours(&mut self, rows: usize) {
        if self.x.len() != rows * INPUTS {
            self.x = numbers(rows * INPUTS);
        }
        self.y.resize(rows * self.outputs, 0.0);
        self.ours
            .forward(&self.cpu, &self.x, &mut self.y, &mut self.scratch);
    }

    /// Activations of `rows` rows, for candle.
    ///
    /// # Errors
    /// If candle refuses them.
    pub(super) fn candle_inputs(rows: usize) -> anyhow::Result<CandleInputs> {
        CandleInputs::new(numbers(rows * INPUTS), INPUTS).context("candle")
    }

    /// The product with `x`, by candle's kernel.
    ///
    /// # Errors
    /// If candle refuses it.
    pub(super) fn candle(&self, x: &CandleInputs) -> anyhow::Result<()> {
        let forward = self.candle.as_ref().map(|candle| candle.forward(x));
        forward.transpose().context("candle").map(drop)
    }
}

/// Numbers between -1 and 1 of no meaning.
fn numbers(count: usize) -> Vec<f32> {
    (0..count as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0)
        .collect()
}

/// ggml's blocks of `outputs` rows: scales of 2^-7, quants of no meaning.
fn blocks(format: GgmlDType, outputs: usize) -> Vec<u8> {
    /// 2^-7 in half precision.
    const SCALE: [u8; 2] = 0x2000_u16.to_le_bytes();
    let mut row: Vec<u8> = (0..(INPUTS / format.block_size() * format.type_size()) as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for block in row.chunks_exact_mut(format.type_size()) {
        block[..2].copy_from_slice(&SCALE);
        if format == GgmlDType::Q4K {
            block[2..4].copy_from_slice(&SCALE);
        }
    }
    row.repeat(outputs)
}
