//! Random weights that are generated when candle requests them, so that names and shapes are candle's own.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use candle_core::{DType, Device, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use safetensors::{Dtype, serialize, tensor::TensorView};

/// The tensors that candle has requested, by name.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Weights of a random model.
#[derive(Clone)]
pub(super) struct RandomWeights {
    seed: u64,
    /// Norms multiply by 1 and the weight.
    norm_plus_one: bool,
    /// The embedding is the head too.
    tied: bool,
    tensors: Arc<Mutex<Tensors>>,
}

/// A number for `name`, the same in every run.
pub(super) fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

impl RandomWeights {
    pub(super) fn new(seed: u64, norm_plus_one: bool, tied: bool) -> Self {
        Self {
            seed,
            norm_plus_one,
            tied,
            tensors: Arc::default(),
        }
    }

    /// Where candle's models take their tensors from.
    pub(super) fn builder(&self) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, Device::Cpu)
    }

    /// The same, each tensor times what `factor` says of its name. A head that is the embedding is asked for by its own
    /// name, so that the two may differ.
    pub(super) fn builder_times(
        &self,
        factor: impl Fn(&str) -> f64 + Send + Sync + 'static,
    ) -> VarBuilder<'static> {
        let multiplied = MultipliedWeights {
            weights: self.clone(),
            factor: Box::new(factor),
        };
        VarBuilder::from_backend(Box::new(multiplied), DType::F32, Device::Cpu)
    }

    /// A safetensors file of all tensors that candle has requested.
    pub(super) fn file(&self) -> Vec<u8> {
        let tensors = self.tensors.lock().unwrap();
        let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = tensors
            .iter()
            .map(|(name, (shape, values))| {
                let bytes = values.iter().flat_map(|value| value.to_le_bytes());
                (name, shape, bytes.collect())
            })
            .collect();
        let views = bytes.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, (*shape).clone(), bytes).unwrap();
            (*name, view)
        });
        serialize(views, None).unwrap()
    }

    /// Matrices have the variance 1 / inputs, norms are near 1, and biases are not small.
    fn values(&self, name: &str, shape: &[usize]) -> Vec<f32> {
        let (middle, width) = match shape {
            [_, inputs] => (0.0, (3.0 / *inputs as f32).sqrt()),
            _ if name.contains("norm") => (if self.norm_plus_one { 0.0 } else { 1.0 }, 0.3),
            _ => (0.0, 0.5),
        };
        // Falcon asks for a head in any case.
        let name = match name {
            "lm_head.weight" if self.tied => "transformer.word_embeddings.weight",
            name => name,
        };
        let mut state = hash(&format!("{} {name}", self.seed));
        (0..shape.iter().product())
            .map(|_| {
                // Knuth's multiplier; the upper bits are random enough.
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let unit = (state >> 40) as f32 / (1_u32 << 23) as f32 - 1.0;
                middle + width * unit
            })
            .collect()
    }
}

impl SimpleBackend for RandomWeights {
    fn get(&self, shape: Shape, name: &str, _: Init, _: DType, device: &Device) -> Result<Tensor> {
        let shape = shape.into_dims();
        let mut tensors = self.tensors.lock().unwrap();
        let (_, values) = tensors
            .entry(name.to_owned())
            .or_insert_with(|| (shape.clone(), self.values(name, &shape)));
        Tensor::from_slice(values, shape, device)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        candle_core::bail!("'{name}' is asked for without a shape")
    }

    fn contains_tensor(&self, name: &str) -> bool {
        name == "shared.weight" || name == "lm_head.weight" && !self.tied
    }
}

/// Weights that are multiplied when candle requests them.
struct MultipliedWeights {
    weights: RandomWeights,
    /// By what a tensor is, by its name.
    factor: Box<dyn Fn(&str) -> f64 + Send + Sync>,
}

impl SimpleBackend for MultipliedWeights {
    fn get(&self, shape: Shape, name: &str, h: Init, t: DType, device: &Device) -> Result<Tensor> {
        let is_embedding = self.weights.tied && name == "lm_head.weight";
        let stored = if is_embedding {
            "model.embed_tokens.weight"
        } else {
            name
        };
        self.weights.get(shape, stored, h, t, device)? * (self.factor)(name)
    }

    fn get_unchecked(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        self.weights.get_unchecked(name, dtype, device)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.weights.contains_tensor(name)
    }
}
