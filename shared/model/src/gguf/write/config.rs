//! A model's sizes and constants as metadata.

use super::error::GgufWriteError;
use crate::{
    checkpoint::Checkpoint,
    config::{Architecture, ModelConfig},
    gguf::{
        config::{EOS_TOKEN_IDS, QUERY_SCALAR},
        container::ALIGNMENT,
        tensor_names,
        value::{self, Array, Metadata, Value},
    },
    rope::RopeScaling,
};

/// Version of the quantised formats, since a change of 2023.
const QUANTIZATION_VERSION: u32 = 2;

/// Adds everything that is no tokenizer.
pub(super) fn write(
    checkpoint: &Checkpoint,
    name: &str,
    file_type: u32,
    metadata: &mut Metadata,
) -> Result<(), GgufWriteError> {
    let config = checkpoint.config();
    let architecture = tensor_names::architecture(config.architecture)
        .ok_or(GgufWriteError::Architecture(config.architecture))?;
    for (key, value) in [
        (
            "general.architecture",
            Value::String(architecture.to_owned()),
        ),
        ("general.type", Value::String("model".to_owned())),
        ("general.name", Value::String(name.to_owned())),
        ("general.file_type", Value::U32(file_type)),
        (
            "general.quantization_version",
            Value::U32(QUANTIZATION_VERSION),
        ),
        ("general.alignment", Value::U32(ALIGNMENT as u32)),
    ] {
        metadata.insert(key, value);
    }
    let key = |name: &str| format!("{architecture}.{name}");
    for (name, size) in [
        ("block_count", config.layers),
        ("context_length", config.context_len),
        ("embedding_length", config.hidden_size),
        ("feed_forward_length", config.intermediate_size),
        ("attention.head_count", config.heads),
        ("attention.head_count_kv", config.kv_heads),
        ("attention.key_length", config.head_dim),
        ("attention.value_length", config.head_dim),
        ("rope.dimension_count", config.head_dim),
        ("vocab_size", config.vocab_size),
    ] {
        metadata.insert(key(name), Value::U32(size as u32));
    }
    let epsilon = Value::F32(config.rms_norm_eps);
    metadata.insert(key("attention.layer_norm_rms_epsilon"), epsilon);
    if let Some(rope) = config.rope {
        metadata.insert(key("rope.freq_base"), single("rope_theta", rope.theta)?);
        match rope.scaling {
            // The latter is a tensor of factors.
            RopeScaling::Default | RopeScaling::Llama3 { .. } => {}
            RopeScaling::Linear { factor } => {
                let linear = Value::String("linear".to_owned());
                metadata.insert(key("rope.scaling.type"), linear);
                metadata.insert(key("rope.scaling.factor"), single("rope factor", factor)?);
            }
        }
    }
    for (name, cap) in [
        ("attn_logit_softcapping", config.attention_softcap),
        ("final_logit_softcapping", config.logit_softcap),
    ] {
        if let Some(cap) = cap {
            metadata.insert(key(name), Value::F32(cap));
        }
    }
    windows(config, &key, metadata)?;
    let scalar = 1.0 / (f64::from(config.attention_scale) * f64::from(config.attention_scale));
    if (scalar - config.head_dim as f64).abs() > 1e-3 {
        // llama.cpp does not read it: it knows the scale of each published size.
        metadata.insert(QUERY_SCALAR, Value::F64(scalar.round()));
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
            metadata.insert(key, Value::U32(*id));
        }
    }
    metadata.insert(
        EOS_TOKEN_IDS,
        array(value::U32, ends.iter().map(|id| Value::U32(*id))),
    );
    Ok(())
}

/// Which layers have a window, and how long it is.
fn windows(
    config: &ModelConfig,
    key: &impl Fn(&str) -> String,
    metadata: &mut Metadata,
) -> Result<(), GgufWriteError> {
    let windowed: Vec<bool> = (0..config.layers)
        .map(|layer| config.window_of(layer).is_some())
        .collect();
    let Some(window) = config.window.filter(|_| windowed.contains(&true)) else {
        if config.architecture == Architecture::Mistral {
            // Tells it from a Llama.
            metadata.insert(key("attention.sliding_window"), Value::U32(0));
        }
        return Ok(());
    };
    let expressible = match config.architecture {
        Architecture::Mistral => windowed.iter().all(|windowed| *windowed),
        Architecture::Gemma2 | Architecture::Gemma3 => true,
        _ => false,
    };
    if !expressible {
        return Err(GgufWriteError::Config {
            what: "sliding window",
            reason: "llama.cpp knows none for its architecture".to_owned(),
        });
    }
    metadata.insert(key("attention.sliding_window"), Value::U32(window as u32));
    if config.architecture != Architecture::Mistral {
        let flags = windowed.into_iter().map(Value::Bool);
        let pattern = key("attention.sliding_window_pattern");
        metadata.insert(pattern, array(value::BOOL, flags));
        if let Some(rope) = config.window_rope {
            metadata.insert(key("rope.freq_base_swa"), single("rope_theta", rope.theta)?);
        }
    }
    Ok(())
}

/// A number that must come out as it was: the format has single precision.
fn single(what: &'static str, number: f64) -> Result<Value, GgufWriteError> {
    let single = number as f32;
    if f64::from(single) == number {
        Ok(Value::F32(single))
    } else {
        Err(GgufWriteError::Config {
            what,
            reason: format!("{number} has no single precision form"),
        })
    }
}

fn array(kind: u32, items: impl Iterator<Item = Value>) -> Value {
    Value::Array(Array {
        kind,
        items: items.collect(),
    })
}
