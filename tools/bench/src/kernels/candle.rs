//! The same products by candle's kernels, to be measured beside ours.

use std::borrow::Cow;

use candle_core::{
    Device, Error, Module, Tensor,
    quantized::{GgmlDType, QMatMul, QStorage, QTensor},
};

/// A matrix as candle holds it.
#[derive(Clone, Debug)]
pub(super) struct CandleMatrix {
    weights: CandleWeights,
}

#[derive(Clone, Debug)]
enum CandleWeights {
    /// `(inputs, outputs)`, a view.
    Dense(Tensor),
    Quantized(QMatMul),
}

/// Inputs as candle takes them, `(rows, inputs)`.
#[derive(Clone, Debug)]
pub(super) struct CandleInputs(Tensor);

impl CandleInputs {
    /// Takes whole rows of `inputs` numbers.
    ///
    /// # Errors
    /// If candle refuses them.
    pub(super) fn new(x: Vec<f32>, inputs: usize) -> Result<Self, Error> {
        let rows = x.len() / inputs;
        Tensor::from_vec(x, (rows, inputs), &Device::Cpu).map(Self)
    }
}

impl CandleMatrix {
    /// Takes `weights`, `(outputs, inputs)`, in f32.
    ///
    /// # Errors
    /// If candle refuses them.
    pub(super) fn new(weights: Vec<f32>, inputs: usize) -> Result<Self, Error> {
        let outputs = weights.len() / inputs;
        let weights = Tensor::from_vec(weights, (outputs, inputs), &Device::Cpu)?;
        Ok(Self {
            weights: CandleWeights::Dense(weights.t()?),
        })
    }

    /// Takes ggml's blocks of `outputs` rows of `inputs`.
    ///
    /// # Errors
    /// If candle refuses them.
    pub(super) fn from_ggml(
        format: GgmlDType,
        bytes: Vec<u8>,
        outputs: usize,
        inputs: usize,
    ) -> Result<Self, Error> {
        let stored = QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, format)?;
        let tensor = QTensor::new(stored, (outputs, inputs))?;
        Ok(Self {
            weights: CandleWeights::Quantized(QMatMul::from_qtensor(tensor)?),
        })
    }

    /// Computes the products with `x` and drops them.
    ///
    /// # Errors
    /// If candle refuses them.
    pub(super) fn forward(&self, x: &CandleInputs) -> Result<(), Error> {
        match &self.weights {
            CandleWeights::Dense(weights) => x.0.matmul(weights),
            CandleWeights::Quantized(weights) => weights.forward(&x.0),
        }
        .map(drop)
    }
}
