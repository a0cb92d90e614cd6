//! The metadata of a GGUF file as the `config.json` it was made from.
//!
//! So that a family's rules stand in one place: whatever the file was, its config is understood by
//! [`ModelConfig::from_json`].

use candle_core::quantized::GgmlDType;
use serde_json::{Value as Json, json};

use super::{
    container::Container,
    error::GgufError,
    rope_factors,
    tensor_names::{EMBEDDING, HEAD},
    value::{Metadata, Value},
};
use crate::config::ModelConfig;

/// Name of our own key: all end tokens, where the format's own keys hold one of each kind.
pub(crate) const EOS_TOKEN_IDS: &str = "outrider.eos_token_ids";
/// Gemma's `query_pre_attn_scalar`, where it is not the head's dimension.
pub(crate) const QUERY_SCALAR: &str = "outrider.query_pre_attn_scalar";
/// Layers in a row of which the last sees everything, unless the file says otherwise.
const GEMMA2_PATTERN: u64 = 2;
const GEMMA3_PATTERN: u64 = 6;
/// Base of the rotation in Gemma 3's layers with a window: no file says it but new ones.
const GEMMA3_LOCAL_BASE: f64 = 10_000.0;
/// Most layers; no model comes near this. What is made for each of them would fill any memory otherwise.
const MOST_LAYERS: u64 = 1 << 12;

/// Reads the model's sizes and constants.
///
/// # Errors
/// If one is missing or makes no sense, or the architecture is not supported.
pub(crate) fn read(file: &Container) -> Result<ModelConfig, GgufError> {
    let json = json(file)?;
    Ok(ModelConfig::from_json(json.to_string().as_bytes())?)
}

/// Keys of one architecture.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn whole(&self, name: &str) -> Result<Option<u64>, GgufError> {
        self.metadata.whole(&self.key(name))
    }

    fn real(&self, name: &str) -> Result<Option<f64>, GgufError> {
        self.metadata.real(&self.key(name))
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, GgufError> {
        value.ok_or_else(|| GgufError::MissingKey(self.key(name)))
    }
}

fn json(file: &Container) -> Result<Json, GgufError> {
    let metadata = &file.metadata;
    let architecture = metadata
        .string("general.architecture")?
        .ok_or_else(|| GgufError::MissingKey("general.architecture".to_owned()))?;
    let keys = Keys {
        metadata,
        architecture,
    };
    let has = |tensor: &str| file.tensors.get(tensor).is_some();
    let model_type = match architecture {
        // llama.cpp runs Mistral as a Llama, without its window; files written here tell.
        "llama" if keys.whole("attention.sliding_window")?.is_some() => "mistral",
        "llama" | "qwen2" | "qwen3" | "gemma2" | "gemma3" => architecture,
        other => return Err(GgufError::Architecture(other.to_owned())),
    };
    if keys.whole("expert_count")?.unwrap_or(0) > 0 {
        return Err(GgufError::Architecture(format!(
            "{architecture} with experts"
        )));
    }
    let whole = |name: &str| -> Result<u64, GgufError> { keys.required(name, keys.whole(name)?) };
    let layers = whole("block_count")?;
    if layers > MOST_LAYERS {
        return Err(GgufError::Key {
            key: keys.key("block_count"),
            found: layers.to_string(),
            expected: "at most 4096",
        });
    }
    let hidden = whole("embedding_length")?;
    let heads = whole("attention.head_count")?;
    let head_dim = match keys.whole("attention.key_length")? {
        Some(head_dim) => Some(head_dim),
        None => keys.whole("rope.dimension_count")?,
    };
    let epsilon = "attention.layer_norm_rms_epsilon";
    let rows = file
        .tensors
        .get(EMBEDDING)
        .and_then(|(info, _)| info.shape.first().copied());
    let mut config = json!({
        "model_type": model_type,
        "vocab_size": rows.map_or_else(|| whole("vocab_size"), |rows| Ok(rows as u64))?,
        "hidden_size": hidden,
        "intermediate_size": whole("feed_forward_length")?,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": keys.whole("attention.head_count_kv")?.unwrap_or(heads),
        "head_dim": head_dim.unwrap_or(hidden.checked_div(heads).unwrap_or_default()),
        "max_position_embeddings": whole("context_length")?,
        "rms_norm_eps": keys.required(epsilon, keys.real(epsilon)?)?,
        "tie_word_embeddings": !has(HEAD),
        "attention_bias": architecture == "llama" && has("blk.0.attn_q.bias"),
        "mlp_bias": has("blk.0.ffn_gate.bias"),
    });
    tokens(metadata, &mut config)?;
    if architecture.starts_with("gemma") {
        gemma(&keys, &mut config)?;
        return Ok(config);
    }
    config["hidden_act"] = "silu".into();
    config["rope_parameters"] = rope(file, &keys)?;
    if model_type == "mistral" {
        let window = keys.whole("attention.sliding_window")?.filter(|&n| n > 0);
        config["sliding_window"] = window.into();
    }
    Ok(config)
}

/// What Gemma has beyond the others.
fn gemma(keys: &Keys<'_>, config: &mut Json) -> Result<(), GgufError> {
    let layers = config["num_hidden_layers"].as_u64().unwrap_or_default() as usize;
    let gemma2 = keys.architecture == "gemma2";
    let window = keys.whole("attention.sliding_window")?.filter(|&n| n > 0);
    let window = window.or(gemma2.then_some(4096));
    let pattern = keys.key("attention.sliding_window_pattern");
    let every = if gemma2 {
        GEMMA2_PATTERN
    } else {
        GEMMA3_PATTERN
    };
    let windowed: Vec<bool> = if let Some(Value::Array(_)) = keys.metadata.0.get(&pattern) {
        keys.metadata.bools(&pattern)?.unwrap_or_default()
    } else {
        let every = keys.metadata.whole(&pattern)?.unwrap_or(every) as usize;
        let sees_everything = |layer: usize| every > 0 && (layer + 1).is_multiple_of(every);
        (0..layers).map(|layer| !sees_everything(layer)).collect()
    };
    let kinds = windowed.iter().map(|&windowed| {
        if windowed && window.is_some() {
            "sliding_attention"
        } else {
            "full_attention"
        }
    });
    let kinds: Vec<&str> = kinds.collect();
    // The largest of each family scales by the hidden size over the heads, as llama.cpp knows by
    // the number of layers, too.
    let of = |name: &str| config[name].as_u64().unwrap_or_default();
    let largest = matches!((gemma2, layers), (true, 46) | (false, 62));
    let scalar = if largest {
        of("hidden_size") as f64 / of("num_attention_heads").max(1) as f64
    } else {
        of("head_dim") as f64
    };
    let scalar = keys.metadata.real(QUERY_SCALAR)?.unwrap_or(scalar);
    let rope = |base: f64| json!({"rope_type": "default", "rope_theta": base});
    let rope = if gemma2 {
        rope(keys.real("rope.freq_base")?.unwrap_or(10_000.0))
    } else {
        let mut global = rope(keys.real("rope.freq_base")?.unwrap_or(1_000_000.0));
        scale(keys, &mut global)?;
        let local = keys
            .real("rope.freq_base_swa")?
            .unwrap_or(GEMMA3_LOCAL_BASE);
        json!({"full_attention": global, "sliding_attention": rope(local)})
    };
    for cap in ["attn_logit_softcapping", "final_logit_softcapping"] {
        config[cap] = keys.real(cap)?.into();
    }
    config["hidden_activation"] = "gelu_pytorch_tanh".into();
    config["query_pre_attn_scalar"] = scalar.into();
    config["sliding_window"] = window.into();
    config["layer_types"] = kinds.into();
    config["rope_parameters"] = rope;
    Ok(())
}

/// How positions rotate.
fn rope(file: &Container, keys: &Keys<'_>) -> Result<Json, GgufError> {
    let theta = keys.real("rope.freq_base")?.unwrap_or(10_000.0);
    let mut rope = json!({"rope_type": "default", "rope_theta": theta});
    scale(keys, &mut rope)?;
    let Some((info, bytes)) = file.tensors.get("rope_freqs.weight") else {
        return Ok(rope);
    };
    if info.format != Some(GgmlDType::F32) {
        return Err(GgufError::RopeFactors);
    }
    let (words, _) = bytes.as_chunks::<4>();
    let factors: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    rope_factors::read(&factors, theta, &mut rope)?;
    Ok(rope)
}

/// Adds scaling by a factor, as the metadata says it.
fn scale(keys: &Keys<'_>, rope: &mut Json) -> Result<(), GgufError> {
    let kind = keys.metadata.string(&keys.key("rope.scaling.type"))?;
    if let Some(kind) = kind.filter(|kind| *kind != "none") {
        rope["rope_type"] = kind.into();
        rope["factor"] = keys.real("rope.scaling.factor")?.into();
    }
    Ok(())
}

/// Tokens with a meaning to the model.
fn tokens(metadata: &Metadata, config: &mut Json) -> Result<(), GgufError> {
    let id = |name: &str| metadata.whole(&format!("tokenizer.ggml.{name}_token_id"));
    if let Some(bos) = id("bos")? {
        config["bos_token_id"] = bos.into();
    }
    if let Some(all) = metadata.wholes(EOS_TOKEN_IDS)? {
        config["eos_token_id"] = all.into();
        return Ok(());
    }
    let mut ends: Vec<u64> = Vec::new();
    for name in ["eos", "eot", "eom"] {
        ends.extend(id(name)?.filter(|id| !ends.contains(id)));
    }
    // Few files name more than one, though instruct models have several.
    let tokens = metadata
        .strings("tokenizer.ggml.tokens")?
        .unwrap_or_default();
    let kinds = metadata
        .wholes("tokenizer.ggml.token_type")?
        .unwrap_or_default();
    for (id, (token, kind)) in tokens.iter().zip(kinds).enumerate() {
        let id = id as u64;
        if kind == 3 && ENDS.contains(token) && !ends.contains(&id) {
            ends.push(id);
        }
    }
    config["eos_token_id"] = ends.into();
    Ok(())
}

/// Control tokens that end a turn or a text in the families that are read, as llama.cpp has them.
const ENDS: [&str; 7] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<eos>",
];

#[cfg(test)]
mod tests;
