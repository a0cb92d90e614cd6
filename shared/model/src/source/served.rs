//! A model once it is loaded, and what its peers must know of it.

use std::time::{Duration, Instant};

use super::SourceError;
use super::inspected::Vocabulary;
use crate::checkpoint::{Checkpoint, Matrices, SpecialTokens};
use crate::computation::{Computation, Place};
use crate::head::AcceptanceHead;
use crate::linear::WeightFormat;
use crate::runtime::Model;

/// A model ready to serve, and what its peers must know of it.
#[derive(Debug)]
pub struct ServedModel<M> {
    /// The model.
    pub model: M,
    /// Name it is served under.
    pub name: String,
    /// Number of token ids of its tokenizer.
    pub vocab_size: u32,
    /// SHA-256 over the tokenizer's ids and bytes.
    pub vocab_fingerprint: [u8; 32],
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
    /// Token that begins every output of an encoder-decoder model, whose encoder takes the prompt; none of
    /// other models.
    pub decoder_start_token_id: Option<u32>,
    /// The bytes of its `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// Its chat template, in Jinja.
    pub chat_template: Option<String>,
    /// The tokens its chat template names.
    pub special_tokens: SpecialTokens,
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
    let vocabulary = Vocabulary::of(checkpoint, path)?;
    let model = std::thread::scope(|scope| {
        // Reads every byte: begun here, it is there when it is asked for.
        scope.spawn(|| checkpoint.fingerprint());
        checkpoint.load(computation)
    });
    let model = model.map_err(|source| SourceError::Checkpoint {
        path: path.to_owned(),
        source,
    })?;
    let numerics = Numerics {
        weights: checkpoint.numerics(computation),
        dtype: dtype(checkpoint, computation, &name),
        kernels: computation.kernel_family(),
    };
    let load_time = began.elapsed();
    let load_ms = load_time.as_millis() as u64;
    tracing::info!(
        model = name,
        dtype = numerics.dtype,
        kernels = numerics.kernels,
        load_ms,
        "model loaded"
    );
    Ok(ServedModel {
        model,
        name,
        vocab_size: vocabulary.size,
        vocab_fingerprint: vocabulary.fingerprint,
        special_tokens: checkpoint.special_tokens(&vocabulary.tokenizer),
        numerics,
        is_on_processors: !matches!(computation, Computation::Device(Place::Cuda(_), _)),
        weights_fingerprint: checkpoint.fingerprint(),
        is_converted: checkpoint.is_gguf(),
        head_format: computation.on_cpu(),
        heads: Vec::new(),
        eos_token_ids: checkpoint.eos_token_ids(),
        decoder_start_token_id: checkpoint
            .config()
            .encoder
            .map(|encoder| encoder.decoder_start_token_id),
        tokenizer_json: checkpoint.tokenizer_json().unwrap_or_default().to_vec(),
        chat_template: checkpoint.chat_template().map(str::to_owned),
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
