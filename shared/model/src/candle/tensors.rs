//! Where candle's models take their tensors from: the files of a checkpoint, every name and shape of which is checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{DType, Device, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use parking_lot::Mutex;

use super::body::{Body, Returns};
use super::config::CandleConfig;
use super::error::CandleError;
use crate::candle_failure::first_line;
use crate::weights::{Weights, WeightsError};

/// Names of the embedding table, which may be the LM head too.
const TABLES: [&str; 2] = [
    "model.embed_tokens.weight",
    "transformer.word_embeddings.weight",
];
const HEAD: &str = "lm_head.weight";
/// Ends of names of tensors that may lie in a file unread: a model computes the first itself, and has no use for the second
/// where its head is the embedding table.
const HARMLESS: [&str; 2] = ["rotary_emb.inv_freq", HEAD];
/// Most names in a message.
const MOST_NAMED: usize = 4;

/// Where tensors come from.
#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    /// A checkpoint, whose numbers are read.
    Read(&'a Weights),
    /// A checkpoint whose numbers are not read: zeros that take no memory stand for every tensor that it has.
    Checked(&'a Weights),
    /// No checkpoint: zeros that take no memory stand for whatever candle asks for.
    Assumed,
}

/// Whether the tensor `name` is an embedding table.
pub(super) fn is_table(name: &str) -> bool {
    TABLES.contains(&name)
}

/// Tensors that candle requested while it built the model.
#[derive(Default)]
struct Asked {
    /// Shapes by name.
    shapes: BTreeMap<String, Vec<usize>>,
    table: Option<Tensor>,
    /// The first tensor that was refused. candle's own error would only cite it.
    refused: Option<WeightsError>,
}

#[derive(Clone)]
struct AskedTensors<'a> {
    origin: Origin<'a>,
    /// Whether the LM head is the embedding table.
    is_tied: bool,
    asked: Arc<Mutex<Asked>>,
}

/// A model that was built, and what it was built from.
pub(super) struct Parts {
    pub(super) body: Box<dyn Body>,
    /// The LM head, `(vocab_size, hidden_size)`, unless it is a part of the body.
    pub(super) head: Option<Tensor>,
    /// Shapes of all its tensors by name.
    pub(super) shapes: BTreeMap<String, Vec<usize>>,
}

/// Makes the model of `config`.
///
/// # Errors
/// Names the first tensor that is missing or has another shape, or those of the checkpoint that the model has no use for.
pub(super) fn build(
    config: &CandleConfig,
    origin: Origin<'_>,
    dtype: DType,
    device: &Device,
) -> std::result::Result<Parts, CandleError> {
    let tensors = AskedTensors {
        origin,
        is_tied: config.constants.is_tied(),
        asked: Arc::default(),
    };
    let backend = Box::new(tensors.clone());
    let builder = VarBuilder::from_backend(backend, dtype, device.clone());
    let constants = config.constants.value();
    let made = (config.family.load)(&constants, builder.clone()).and_then(|body| {
        let shape = config.shape();
        let head = match config.family.returns {
            Returns::HiddenStates => {
                Some(builder.get((shape.vocab_size, shape.hidden_size), HEAD)?)
            }
            Returns::LastRow => None,
        };
        Ok((body, head))
    });
    let mut asked = tensors.asked.lock();
    if let Some(refused) = asked.refused.take() {
        return Err(refused.into());
    }
    let (body, head) = made.map_err(|error| CandleError::Refused(first_line(&error)))?;
    let shapes = std::mem::take(&mut asked.shapes);
    if let Origin::Read(weights) | Origin::Checked(weights) = origin {
        check_all_read(weights, &shapes)?;
    }
    Ok(Parts { body, head, shapes })
}

/// Refuses a checkpoint with other tensors than those of `shapes`.
fn check_all_read(
    weights: &Weights,
    shapes: &BTreeMap<String, Vec<usize>>,
) -> std::result::Result<(), CandleError> {
    let mut unread = weights.beside(shapes.keys().cloned());
    unread.retain(|name| !HARMLESS.iter().any(|end| name.ends_with(end)));
    if unread.is_empty() {
        return Ok(());
    }
    let more = unread.len().saturating_sub(MOST_NAMED);
    unread.truncate(MOST_NAMED);
    let mut names = unread.join(", ");
    if more > 0 {
        names = format!("{names} and {more} more");
    }
    Err(CandleError::Unread { names })
}

impl SimpleBackend for AskedTensors<'_> {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: Init,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let shape = shape.into_dims();
        if name == HEAD
            && self.is_tied
            && let Some(table) = &self.asked.lock().table
        {
            return Ok(table.clone());
        }
        let found = match self.origin {
            Origin::Read(weights) => weights.tensor(name, &shape).map(Some),
            Origin::Checked(weights) => weights.check(name, &shape).map(|()| None),
            Origin::Assumed => Ok(None),
        };
        let mut asked = self.asked.lock();
        let numbers = match found {
            Ok(numbers) => numbers,
            Err(refused) => {
                let message = refused.to_string();
                asked.refused.get_or_insert(refused);
                candle_core::bail!("{message}")
            }
        };
        asked.shapes.insert(name.to_owned(), shape.clone());
        let tensor = match numbers {
            Some(numbers) => Tensor::from_vec(numbers, shape, &Device::Cpu)?
                .to_dtype(dtype)?
                .to_device(device)?,
            None => Tensor::zeros((), dtype, device)?.broadcast_as(shape)?,
        };
        if is_table(name) {
            asked.table = Some(tensor.clone());
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        candle_core::bail!("tensor {name} is asked for without a shape")
    }

    fn contains_tensor(&self, name: &str) -> bool {
        match self.origin {
            Origin::Read(weights) | Origin::Checked(weights) => weights.contains(name),
            Origin::Assumed => true,
        }
    }
}
