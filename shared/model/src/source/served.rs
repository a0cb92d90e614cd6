//! A model once it is loaded, and what its peers must know of it.

use std::time::{Duration, Instant};

use candle_core::quantized::GgmlDType;

use super::inspected::described;
use super::{ModelSource, Outline, SourceError, TextEncoding};
use crate::checkpoint::{Checkpoint, Matrices};
use crate::computation::{AUTOMATIC, Computation, ComputeDevice};
use crate::head::AcceptanceHead;
use crate::linear::WeightFormat;
use crate::runtime::Model;

/// A model ready to serve, and what its peers must know of it.
#[derive(Debug)]
pub struct ServedModel<M> {
    /// The model.
    pub model: M,
    /// What its peers must know of it.
    pub outline: Outline,
    /// How texts and chats become its tokens.
    pub text: TextEncoding,
    /// What its numbers depend on.
    pub numerics: Numerics,
    /// Whether it takes time from others that compute on this machine's processors: not where GPUs compute all of it.
    pub is_on_processors: bool,
    /// Fingerprint of its weights, the same whatever format they are computed in.
    pub weights_fingerprint: String,
    /// Whether the weights may have been converted from those of another file, as a GGUF file's are: heads that
    /// were trained for that one then fit, and do not know this one's fingerprint.
    pub is_converted: bool,
    /// Format that acceptance heads are computed in beside it.
    pub head_format: WeightFormat,
    /// Its acceptance heads, trained for these weights, at most one for each label.
    pub heads: Vec<AcceptanceHead>,
    /// Its own end tokens.
    pub eos_token_ids: Vec<u32>,
    /// How long it took to load.
    pub load_time: Duration,
}

/// Two models with equal numerics give equal bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numerics {
    /// Fingerprint of weights, constants, format and kernels, in hexadecimal.
    pub weights: String,
    /// Format the weights are computed in, and which others where that does not fit.
    pub dtype: String,
    /// Family of kernels.
    pub kernels: String,
}

/// Loads `checkpoint` to be served as `name`, without acceptance heads; `path` is for messages.
///
/// # Errors
/// If weights or tokenizer are missing or broken.
pub fn serve(
    checkpoint: &Checkpoint,
    computation: impl Into<Computation>,
    name: String,
    path: &str,
) -> Result<ServedModel<Model>, SourceError> {
    let computation = computation.into();
    let began = Instant::now();
    let (outline, text) = described(checkpoint, name, path)?;
    let model = checkpoint.load(computation);
    let model = model.map_err(SourceError::checkpoint(path))?;
    let numerics = Numerics {
        weights: checkpoint.numerics(computation),
        dtype: dtype(checkpoint, computation, &outline.name),
        kernels: computation.kernel_family(),
    };
    let load_time = began.elapsed();
    let load_ms = load_time.as_millis() as u64;
    tracing::info!(
        model = outline.name,
        dtype = numerics.dtype,
        kernels = numerics.kernels,
        load_ms,
        "model loaded"
    );
    Ok(ServedModel {
        model,
        outline,
        text,
        numerics,
        is_on_processors: !matches!(computation, Computation::Device(ComputeDevice::Cuda(_), _)),
        weights_fingerprint: checkpoint.fingerprint(),
        is_converted: checkpoint.weights().is_gguf(),
        head_format: computation.on_cpu(),
        heads: Vec::new(),
        eos_token_ids: checkpoint.eos_token_ids(),
        load_time,
    })
}

/// The format that `computation` computes the weights in, and where that is another than it says; the log tells
/// of which matrices.
fn dtype(checkpoint: &Checkpoint, computation: Computation, model: &str) -> String {
    let Computation::Cpu(format) = computation else {
        return computation.to_string();
    };
    let wanted = format.weights;
    let Matrices { others, count } = checkpoint.matrices(wanted);
    let Some(other) = others.first().map(|(_, format)| *format) else {
        return wanted.to_string();
    };
    let names: Vec<&str> = others.iter().map(|(name, _)| &**name).collect();
    tracing::info!(
        model,
        dtype = wanted.name(),
        matrices = count,
        others = others.len(),
        computed_in = other.name(),
        "matrices whose rows are no whole blocks of dtype: {}",
        kinds(&names).join(", ")
    );
    if others.len() == count {
        return other.to_string();
    }
    format!("{wanted}, {other} in {} of {count} matrices", others.len())
}

/// Names of tensors, those of all layers as one.
fn kinds(names: &[&str]) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for name in names {
        let is_number = |part: &str| part.parse::<usize>().is_ok();
        let parts = name
            .split('.')
            .map(|part| if is_number(part) { "*" } else { part });
        let kind = parts.collect::<Vec<_>>().join(".");
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The warning that a model needs whose weights are stored as floating-point numbers and computed in 8 bits, if
/// `source` leaves the format open.
pub(super) fn rounding_warning(
    source: &ModelSource,
    checkpoint: &Checkpoint,
    computation: Computation,
) -> Option<String> {
    let Computation::Cpu(format) = computation else {
        return None;
    };
    if source.dtype != AUTOMATIC || format.weights != WeightFormat::Q8_0 {
        return None;
    }
    let stored = stored_format(checkpoint)?;
    Some(format!(
        "weights are stored in {stored} and rounded to q8_0, 8 bits, which changes a model's answers a little: dtype = \
         \"f32\" computes with them as they are and takes four times the memory, dtype = \"q8_0\" says that this is meant"
    ))
}

/// The floating-point format of most matrices, if they have one.
fn stored_format(checkpoint: &Checkpoint) -> Option<&'static str> {
    let formats = checkpoint.weights().matrix_formats();
    let floats = [
        (GgmlDType::BF16, "bf16"),
        (GgmlDType::F16, "f16"),
        (GgmlDType::F32, "f32"),
    ];
    let is_most = |wanted: GgmlDType| {
        let of_it = formats.iter().filter(|&&format| format == wanted.into());
        2 * of_it.count() > formats.len()
    };
    let most = floats.into_iter().find(|&(wanted, _)| is_most(wanted));
    most.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(path: &str, dtype: &str) -> Option<String> {
        let source = ModelSource {
            dtype: dtype.to_owned(),
            ..ModelSource::new(path)
        };
        let checkpoint = source.open().expect("a checkpoint");
        let computation = source.computation_of(&checkpoint).expect("a computation");
        rounding_warning(&source, &checkpoint, computation)
    }

    #[test]
    fn only_weights_that_are_rounded_unasked_are_warned_of() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default/draft");
        let warning = warned(folder, "auto").expect("a warning");
        assert!(
            warning.contains("bf16") && warning.contains("q8_0"),
            "{warning}"
        );
        assert_eq!(warned(folder, "q8_0"), None);
        assert_eq!(warned(folder, "f32"), None);
    }
}
