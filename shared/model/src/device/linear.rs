//! Products with weights on the device, and how weights get there.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::rms_norm;

use super::DeviceError;
use crate::{
    config::ModelConfig,
    decoder::tensors::{Part, TensorNames},
    weights::Weights,
};

type Loaded<T> = std::result::Result<T, DeviceError>;

/// A linear layer: `y = W x + b`.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    /// `(outputs, inputs)`.
    weight: Tensor,
    /// `(outputs)`.
    bias: Option<Tensor>,
}

impl Linear {
    /// `x` is `(rows, inputs)`, of any float type; the result `(rows, outputs)`, of the weights' type.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let product = x.to_dtype(self.weight.dtype())?.matmul(&self.weight.t()?)?;
        match &self.bias {
            Some(bias) => product.broadcast_add(bias),
            None => Ok(product),
        }
    }

    /// The rows `rows` of the weights, as an embedding table has them.
    pub(super) fn rows(&self, rows: &Tensor) -> Result<Tensor> {
        self.weight.index_select(rows, 0)
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
pub(super) struct Loader<'a> {
    config: &'a ModelConfig,
    weights: &'a Weights,
    names: TensorNames,
    device: &'a Device,
    dtype: DType,
}

impl<'a> Loader<'a> {
    pub(super) fn new(
        config: &'a ModelConfig,
        weights: &'a Weights,
        device: &'a Device,
        dtype: DType,
    ) -> Self {
        Self {
            config,
            weights,
            names: TensorNames::of(weights),
            device,
            dtype,
        }
    }

    pub(super) fn config(&self) -> &'a ModelConfig {
        self.config
    }

    /// Projections of one input of layer `layer`, as one matrix.
    pub(super) fn stack(&self, layer: usize, parts: &[Part]) -> Loaded<Linear> {
        let config = self.config;
        let (mut matrices, mut biases) = (Vec::new(), Vec::new());
        for &part in parts {
            let shape = part.shape(config);
            let name = self.names.weight(config, layer, part);
            matrices.push(self.tensor(&name, &shape, self.dtype)?);
            if part.has_bias(config) {
                let name = self.names.bias(config, layer, part);
                biases.push(self.tensor(&name, &shape[..1], self.dtype)?);
            }
        }
        let stack = |tensors: &[Tensor]| {
            let first = || self.names.weight(config, layer, parts[0]);
            Tensor::cat(tensors, 0).map_err(|error| DeviceError::loading(&first(), &error))
        };
        Ok(Linear {
            weight: stack(&matrices)?,
            bias: (!biases.is_empty()).then(|| stack(&biases)).transpose()?,
        })
    }

    /// The norm `part` of layer `layer`.
    pub(super) fn norm(&self, layer: usize, part: Part) -> Loaded<Norm> {
        let name = self.names.weight(self.config, layer, part);
        self.norm_of(&name, &part.shape(self.config))
    }

    /// The norm `part`, if models of this kind have it.
    pub(super) fn optional_norm(&self, layer: usize, part: Part) -> Loaded<Option<Norm>> {
        let has_part = Part::of(self.config).any(|other| other == part);
        has_part.then(|| self.norm(layer, part)).transpose()
    }

    /// The norm after the last layer.
    pub(super) fn final_norm(&self) -> Loaded<Norm> {
        self.norm_of(&self.names.norm(), &[self.config.hidden_size])
    }

    /// The embedding table.
    pub(super) fn embedding(&self) -> Loaded<Linear> {
        self.table(&self.names.embedding())
    }

    /// The LM head, `None` if the embedding table serves.
    pub(super) fn head(&self) -> Loaded<Option<Linear>> {
        let own = !self.config.tie_word_embeddings;
        own.then(|| self.table(&self.names.head())).transpose()
    }

    fn table(&self, name: &str) -> Loaded<Linear> {
        let shape = [self.config.vocab_size, self.config.hidden_size];
        Ok(Linear {
            weight: self.tensor(name, &shape, self.dtype)?,
            bias: None,
        })
    }

    fn norm_of(&self, name: &str, shape: &[usize]) -> Loaded<Norm> {
        let weight = self.tensor(name, shape, DType::F32)?;
        let plus = if self.config.norm_plus_one { 1.0 } else { 0.0 };
        Ok(Norm {
            weight: (weight + plus).map_err(|error| DeviceError::loading(name, &error))?,
            eps: self.config.rms_norm_eps,
        })
    }

    fn tensor(&self, name: &str, shape: &[usize], dtype: DType) -> Loaded<Tensor> {
        let values = self.weights.tensor(name, shape)?;
        // Converted before it travels: half the bytes.
        Tensor::from_vec(values, shape, &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(dtype)?.to_device(self.device))
            .map_err(|error| DeviceError::loading(name, &error))
    }
}
