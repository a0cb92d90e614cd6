//! Products with weights on the device, and how weights get there.

use std::{borrow::Cow, sync::Arc};

use candle_core::{
    DType, Device, Result, Tensor,
    quantized::{GgmlDType, QStorage, QTensor},
};
use candle_nn::ops::rms_norm;

use super::{DeviceError, backend};
use crate::{
    computation::NumberFormat,
    config::ModelConfig,
    decoder::tensors::{LayerPart, TensorNames},
    weights::Weights,
};

type LoadResult<T> = std::result::Result<T, DeviceError>;

/// A linear layer: `y = W x + b`.
#[derive(Clone, Debug)]
pub(super) struct DeviceLinear {
    weight: DeviceMatrix,
    /// `(outputs)`, of type `dtype`.
    bias: Option<Tensor>,
    /// Type of what comes out.
    dtype: DType,
}

/// Weights, `(outputs, inputs)`.
#[derive(Clone, Debug)]
enum DeviceMatrix {
    /// Of the type that the layer's outputs have.
    Plain(Tensor),
    /// In blocks, which candle's kernels multiply as they are.
    Blocks(Arc<QTensor>),
}

impl DeviceLinear {
    /// `x` is `(rows, inputs)`, of any float type; the result `(rows, outputs)`, of the layer's type.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let product = match &self.weight {
            DeviceMatrix::Plain(weight) => x.to_dtype(self.dtype)?.matmul(&weight.t()?)?,
            // The kernels quantise each row of `x`, so there is nothing to gain from narrowing it before.
            DeviceMatrix::Blocks(weight) => {
                let x = x.to_dtype(DType::F32)?.contiguous()?;
                x.apply_op1_no_bwd(weight.as_ref())?.to_dtype(self.dtype)?
            }
        };
        match &self.bias {
            Some(bias) => product.broadcast_add(bias),
            None => Ok(product),
        }
    }

    /// The rows `rows` of the weights, as an embedding table has them.
    pub(super) fn rows(&self, rows: &Tensor) -> Result<Tensor> {
        match &self.weight {
            DeviceMatrix::Plain(weight) => weight.index_select(rows, 0),
            DeviceMatrix::Blocks(weight) => weight.embedding(rows),
        }
    }
}

/// Root mean square norm in f32.
#[derive(Clone, Debug)]
pub(super) struct Norm {
    weight: Tensor,
    eps: f32,
}

impl Norm {
    /// `x` is `(rows, width)` in f32, contiguous.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        rms_norm(x, &self.weight, self.eps)
    }
}

/// Brings a checkpoint's tensors to the device.
pub(super) struct DeviceLoader<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) weights: &'a Weights,
    pub(super) names: TensorNames,
    pub(super) device: &'a Device,
    pub(super) format: NumberFormat,
}

impl DeviceLoader<'_> {
    /// Projections of one input of layer `layer`, as one matrix.
    pub(super) fn stack(&self, layer: usize, parts: &[LayerPart]) -> LoadResult<DeviceLinear> {
        let config = self.config;
        let matrix = |part: &LayerPart| {
            let shape = part.shape(config);
            let name = self.names.weight(config, layer, *part);
            (name, [shape[0], shape[1]])
        };
        let bias = |part: &LayerPart| {
            let name = self.names.bias(config, layer, *part);
            self.tensor(&name, &part.shape(config)[..1], self.dtype())
        };
        let matrices: Vec<_> = parts.iter().map(matrix).collect();
        let biased = parts.iter().filter(|part| part.has_bias(config));
        let biases = biased.map(bias).collect::<LoadResult<Vec<_>>>()?;
        let stacked = || {
            Tensor::cat(&biases, 0).map_err(|error| DeviceError::loading(&matrices[0].0, &error))
        };
        Ok(DeviceLinear {
            bias: (!biases.is_empty()).then(stacked).transpose()?,
            weight: self.matrix(&matrices)?,
            dtype: self.dtype(),
        })
    }

    /// The norm `part` of layer `layer`.
    pub(super) fn norm(&self, layer: usize, part: LayerPart) -> LoadResult<Norm> {
        let name = self.names.weight(self.config, layer, part);
        self.norm_of(&name, &part.shape(self.config))
    }

    /// The norm `part`, if models of this kind have it.
    pub(super) fn optional_norm(&self, layer: usize, part: LayerPart) -> LoadResult<Option<Norm>> {
        let has_part = LayerPart::of(self.config).any(|other| other == part);
        has_part.then(|| self.norm(layer, part)).transpose()
    }

    /// The table of the vocabulary's rows called `name`.
    pub(super) fn table(&self, name: &str) -> LoadResult<DeviceLinear> {
        let shape = [self.config.vocab_size, self.config.hidden_size];
        Ok(DeviceLinear {
            weight: self.matrix(&[(name.to_owned(), shape)])?,
            bias: None,
            dtype: self.dtype(),
        })
    }

    /// Type of all that is no weight in blocks.
    fn dtype(&self) -> DType {
        backend::dtype(self.format)
    }

    /// Matrices of one input as one.
    fn matrix(&self, parts: &[(String, [usize; 2])]) -> LoadResult<DeviceMatrix> {
        let (first, [_, inputs]) = &parts[0];
        let format = self.format.stored(*inputs);
        if matches!(format, GgmlDType::Q8_0 | GgmlDType::Q4K)
            && let Some(blocks) = self.weights.in_blocks(parts, format)?
        {
            let outputs: usize = parts.iter().map(|(_, [outputs, _])| outputs).sum();
            let stored = QStorage::from_data(Cow::Owned(blocks), self.device, format);
            let matrix = stored.and_then(|stored| QTensor::new(stored, (outputs, *inputs)));
            let matrix = matrix.map_err(|error| DeviceError::loading(first, &error))?;
            return Ok(DeviceMatrix::Blocks(Arc::new(matrix)));
        }
        let plain = |(name, shape): &(String, [usize; 2])| self.tensor(name, shape, self.dtype());
        let matrices = parts.iter().map(plain).collect::<LoadResult<Vec<_>>>()?;
        let stacked = Tensor::cat(&matrices, 0);
        stacked
            .map(DeviceMatrix::Plain)
            .map_err(|error| DeviceError::loading(first, &error))
    }

    /// The norm called `name`.
    pub(super) fn norm_of(&self, name: &str, shape: &[usize]) -> LoadResult<Norm> {
        let weight = self.tensor(name, shape, DType::F32)?;
        let plus = if self.config.norm_plus_one { 1.0 } else { 0.0 };
        Ok(Norm {
            weight: (weight + plus).map_err(|error| DeviceError::loading(name, &error))?,
            eps: self.config.rms_norm_eps,
        })
    }

    fn tensor(&self, name: &str, shape: &[usize], dtype: DType) -> LoadResult<Tensor> {
        let values = self.weights.tensor(name, shape)?;
        // Converted before it travels: half the bytes.
        Tensor::from_vec(values, shape, &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(dtype)?.to_device(self.device))
            .map_err(|error| DeviceError::loading(name, &error))
    }
}
