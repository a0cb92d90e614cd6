//! A model's sizes and constants as metadata.

mod rope;

use super::error::GgufWriteError;
use crate::checkpoint::Checkpoint;
use crate::config::ModelConfig;
use crate::config::architecture::{GgufWindows, smollm3};
use crate::gguf::config::{
    ATTENTION_SCALE, EMBEDDING_SCALE, EOS_TOKEN_IDS, LOGIT_SCALE, QUERY_SCALAR, RESIDUAL_SCALE,
};
use crate::gguf::container::ALIGNMENT;
use crate::gguf_writer::header::MetadataFields;

/// Version of the quantised formats, since a change of 2023.
const QUANTIZATION_VERSION: u32 = 2;

/// Adds everything that is no tokenizer.
pub(super) fn write(
    checkpoint: &Checkpoint,
    name: &str,
    file_type: u32,
    metadata: &mut MetadataFields,
) -> Result<(), GgufWriteError> {
    let config = checkpoint.config();
    let gguf = config.architecture.family().gguf.as_ref();
    let gguf = gguf.ok_or(GgufWriteError::Architecture(config.architecture))?;
    let architecture = gguf.architecture;
    metadata.insert("general.architecture", architecture);
    metadata.insert("general.type", "model");
    metadata.insert("general.name", name);
    metadata.insert("general.file_type", file_type);
    metadata.insert("general.quantization_version", QUANTIZATION_VERSION);
    metadata.insert("general.alignment", ALIGNMENT as u32);
    let key = |name: &str| format!("{architecture}.{name}");
    let rotated = config.rope.as_ref().and_then(|rope| rope.dims);
    for (name, size) in [
        ("block_count", config.layers),
        ("context_length", config.context_len),
        ("embedding_length", config.hidden_size),
        ("feed_forward_length", config.intermediate_size),
        ("attention.head_count", config.heads),
        ("attention.head_count_kv", config.kv_heads),
        ("attention.key_length", config.head_dim),
        ("attention.value_length", config.head_dim),
        ("rope.dimension_count", rotated.unwrap_or(config.head_dim)),
        ("vocab_size", config.vocab_size),
    ] {
        metadata.insert(key(name), size as u32);
    }
    metadata.insert(key("attention.layer_norm_rms_epsilon"), config.rms_norm_eps);
    if let Some(rope) = &config.rope {
        metadata.insert(key("rope.freq_base"), single("rope_theta", rope.theta)?);
        rope::scaling(&rope.scaling, &key, metadata)?;
    }
    for (name, cap) in [
        ("attn_logit_softcapping", config.attention_softcap),
        ("final_logit_softcapping", config.logit_softcap),
    ] {
        if let Some(cap) = cap {
            metadata.insert(key(name), cap);
        }
    }
    windows(config, gguf.windows, &key, metadata)?;
    let unrotated = smollm3::every(smollm3::INTERVAL, config.layers);
    if config.unrotated.contains(&true) && config.unrotated != unrotated {
        return Err(GgufWriteError::Config {
            what: "no_rope_layers",
            reason: "llama.cpp knows none but every fourth layer".to_owned(),
        });
    }
    if gguf.multipliers {
        multipliers(config, &key, metadata);
    } else {
        query_scalar(config, metadata);
    }
    let ends = checkpoint.eos_token_ids();
    for (name, id) in [
        ("bos", config.bos_token_id.as_ref()),
        ("eos", ends.first()),
        ("eot", ends.get(1)),
        ("eom", ends.get(2)),
    ] {
        if let Some(id) = id {
            let key = format!("tokenizer.ggml.{name}_token_id");
            metadata.insert(key, *id);
        }
    }
    metadata.insert(EOS_TOKEN_IDS, ends);
    Ok(())
}

/// What embeddings, scores and blocks are multiplied by, and what logits are divided by.
fn multipliers(config: &ModelConfig, key: &impl Fn(&str) -> String, metadata: &mut MetadataFields) {
    for (name, number) in [
        (EMBEDDING_SCALE, config.embedding_scale),
        (ATTENTION_SCALE, Some(config.attention_scale)),
        (RESIDUAL_SCALE, config.residual_scale),
        (LOGIT_SCALE, config.logit_divisor),
    ] {
        // llama.cpp refuses a file without the last one.
        metadata.insert(key(name), number.unwrap_or(1.0));
    }
}

/// What follows from the scale of scores, where that is not the usual one. llama.cpp does not read it: it knows the
/// scale of each published size.
fn query_scalar(config: &ModelConfig, metadata: &mut MetadataFields) {
    let scalar = 1.0 / (f64::from(config.attention_scale) * f64::from(config.attention_scale));
    if (scalar - config.head_dim as f64).abs() > 1e-3 {
        metadata.insert(QUERY_SCALAR, scalar.round());
    }
}

/// Which layers have a window, and how long it is.
fn windows(
    config: &ModelConfig,
    kind: GgufWindows,
    key: &impl Fn(&str) -> String,
    metadata: &mut MetadataFields,
) -> Result<(), GgufWriteError> {
    let windowed: Vec<bool> = (0..config.layers)
        .map(|layer| config.window_of(layer).is_some())
        .collect();
    let Some(window) = config.window.filter(|_| windowed.contains(&true)) else {
        if kind == GgufWindows::All {
            // Tells Mistral from a Llama.
            metadata.insert(key("attention.sliding_window"), 0_u32);
        }
        return Ok(());
    };
    let expressible = match kind {
        GgufWindows::None => false,
        GgufWindows::All => windowed.iter().all(|windowed| *windowed),
        GgufWindows::Pattern => true,
    };
    if !expressible {
        return Err(GgufWriteError::Config {
            what: "sliding window",
            reason: "llama.cpp knows none for its architecture".to_owned(),
        });
    }
    metadata.insert(key("attention.sliding_window"), window as u32);
    if kind == GgufWindows::Pattern {
        metadata.insert(key("attention.sliding_window_pattern"), windowed);
        if let Some(rope) = &config.window_rope {
            metadata.insert(key("rope.freq_base_swa"), single("rope_theta", rope.theta)?);
        }
    }
    Ok(())
}

/// A number that must come out as it was: the format has single precision.
fn single(what: &'static str, number: f64) -> Result<f32, GgufWriteError> {
    let single = number as f32;
    if f64::from(single) == number {
        Ok(single)
    } else {
        Err(GgufWriteError::Config {
            what,
            reason: format!("{number} has no single precision form"),
        })
    }
}
