//! The metadata of a GGUF file as the `config.json` it was made from.
//!
//! So that a family's rules stand in one place: whatever the file was, its config is understood by
//! [`ModelConfig::from_json`].

mod gemma;
mod rope;

use serde_json::{Value as Json, json};

use super::{GgufError, parts::GgufModel, tokenizer::ENDS, value::GgufMetadata};
use crate::config::{
    Architecture, ModelConfig,
    architecture::{FAMILIES, GgufWindows, ModelFamily},
};
use crate::decoder::tensors::{GGUF_EMBEDDING, GGUF_HEAD};

/// Name of our own key: all end tokens, where the format's own keys hold one of each kind.
pub(crate) const EOS_TOKEN_IDS: &str = "outrider.eos_token_ids";
/// Gemma's `query_pre_attn_scalar`, where it is not the head's dimension.
pub(crate) const QUERY_SCALAR: &str = "outrider.query_pre_attn_scalar";
/// The factor of embeddings, within the keys of an architecture.
pub(crate) const EMBEDDING_SCALE: &str = "embedding_scale";
/// The factor of scores.
pub(crate) const ATTENTION_SCALE: &str = "attention.scale";
/// The factor of what each half of a layer adds to hidden states.
pub(crate) const RESIDUAL_SCALE: &str = "residual_scale";
/// The divisor of logits.
pub(crate) const LOGIT_SCALE: &str = "logit_scale";
/// YaRN's factor of cosines and sines, where it does not follow from the frequencies' factor.
pub(crate) const ROPE_ATTENTION: &str = "outrider.rope_attention_factor";
/// Most layers; no model comes near this. What is made for each of them would fill any memory otherwise.
const MOST_LAYERS: u64 = 1 << 12;

/// Reads the model's sizes and constants.
///
/// # Errors
/// If one is missing or makes no sense, or the architecture is not supported.
pub(crate) fn read(file: &GgufModel) -> Result<ModelConfig, GgufError> {
    let json = json(file)?;
    Ok(ModelConfig::from_json(json.to_string().as_bytes())?)
}

/// Keys of one architecture.
struct Keys<'a> {
    metadata: &'a GgufMetadata,
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

fn json(file: &GgufModel) -> Result<Json, GgufError> {
    let metadata = &file.metadata;
    let architecture = metadata
        .string("general.architecture")?
        .ok_or_else(|| GgufError::MissingKey("general.architecture".to_owned()))?;
    let keys = Keys {
        metadata,
        architecture,
    };
    let has = |tensor: &str| file.tensor(tensor).is_some();
    let family = family(&keys)?;
    if keys.whole("expert_count")?.unwrap_or(0) > 0 {
        return Err(unsupported(format!("{architecture} with experts")));
    }
    let sections = metadata.wholes(&keys.key("rope.dimension_sections"))?;
    if sections.unwrap_or_default().iter().any(|&dims| dims > 0) {
        return Err(unsupported(format!("{architecture} that sees pictures")));
    }
    let window = keys.whole("attention.sliding_window")?.unwrap_or(0);
    if family.architecture == Architecture::Olmo2 && window > 0 {
        return Err(unsupported(format!("{architecture} with windows (OLMo 3)")));
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
    let share = hidden.checked_div(heads).unwrap_or_default();
    let rotated = keys.whole("rope.dimension_count")?;
    let is_partial = family.gguf.as_ref().is_some_and(|gguf| gguf.partial_rotary);
    let head_dim = match keys.whole("attention.key_length")? {
        Some(head_dim) => head_dim,
        None if is_partial => share,
        None => rotated.unwrap_or(share),
    };
    let epsilon = "attention.layer_norm_rms_epsilon";
    let rows = file
        .tensor(GGUF_EMBEDDING)
        .and_then(|(info, _)| info.shape.first().copied());
    let has_bias =
        ["llama", "granite", "olmo2", "glm4"].contains(&architecture) && has("blk.0.attn_q.bias");
    let mut config = json!({
        "model_type": family.model_types[0],
        "vocab_size": rows.map_or_else(|| whole("vocab_size"), |rows| Ok(rows as u64))?,
        "hidden_size": hidden,
        "intermediate_size": whole("feed_forward_length")?,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": keys.whole("attention.head_count_kv")?.unwrap_or(heads),
        "head_dim": head_dim,
        "max_position_embeddings": whole("context_length")?,
        "rms_norm_eps": keys.required(epsilon, keys.real(epsilon)?)?,
        "tie_word_embeddings": !has(GGUF_HEAD),
        "attention_bias": has_bias,
        "mlp_bias": has("blk.0.ffn_gate.bias"),
        // Null where the file has none: no family's default takes its place.
        "bos_token_id": bos(metadata)?,
        "eos_token_id": ends(metadata)?,
    });
    if windows(family) == GgufWindows::Pattern {
        gemma::read(&keys, &mut config)?;
        return Ok(config);
    }
    config["hidden_act"] = "silu".into();
    config["rope_parameters"] = rope::parameters(file, &keys)?;
    if is_partial {
        let rotated = rotated.unwrap_or(head_dim);
        config["partial_rotary_factor"] = (rotated as f64 / head_dim.max(1) as f64).into();
    }
    if family.gguf.as_ref().is_some_and(|gguf| gguf.multipliers) {
        multipliers(&keys, head_dim, &mut config)?;
    }
    if windows(family) == GgufWindows::All {
        let window = keys.whole("attention.sliding_window")?.filter(|&n| n > 0);
        config["sliding_window"] = window.into();
    }
    Ok(config)
}

/// Adds what embeddings, scores and blocks are multiplied by, and what logits are divided by. As in llama.cpp, none and
/// zero leave scores as they are in a Llama with heads of `head_dim` dimensions, and everything else as it is.
fn multipliers(keys: &Keys<'_>, head_dim: u64, config: &mut Json) -> Result<(), GgufError> {
    let of_scores = 1.0 / (head_dim.max(1) as f64).sqrt();
    for (name, key, usual) in [
        (EMBEDDING_SCALE, "embedding_multiplier", 1.0),
        (ATTENTION_SCALE, "attention_multiplier", of_scores),
        (RESIDUAL_SCALE, "residual_multiplier", 1.0),
        (LOGIT_SCALE, "logits_scaling", 1.0),
    ] {
        let found = keys.real(name)?.filter(|&number| number != 0.0);
        config[key] = found.unwrap_or(usual).into();
    }
    Ok(())
}

fn windows(family: &ModelFamily) -> GgufWindows {
    let gguf = family.gguf.as_ref();
    gguf.map_or(GgufWindows::None, |gguf| gguf.windows)
}

/// The family of the file's architecture. llama.cpp runs Mistral as a Llama, without its window; files written here
/// have its length.
fn family(keys: &Keys<'_>) -> Result<&'static ModelFamily, GgufError> {
    let gguf = |family: &&ModelFamily| family.gguf.as_ref().map(|gguf| gguf.architecture);
    let of_name = FAMILIES.iter().copied();
    let of_name: Vec<&ModelFamily> = of_name
        .filter(|family| gguf(family) == Some(keys.architecture))
        .collect();
    let has_window = keys.whole("attention.sliding_window")?.is_some();
    let with_window = of_name
        .iter()
        .find(|family| has_window && windows(family) != GgufWindows::None);
    let family = with_window.or(of_name.first()).copied();
    family.ok_or_else(|| unsupported(keys.architecture.to_owned()))
}

fn unsupported(found: String) -> GgufError {
    let mut supported: Vec<&str> = FAMILIES
        .iter()
        .filter_map(|family| Some(family.gguf.as_ref()?.architecture))
        .collect();
    supported.dedup();
    GgufError::Architecture {
        found,
        supported: supported.join(", "),
    }
}

/// The token that begins a text, if the file names one.
pub(crate) fn bos(metadata: &GgufMetadata) -> Result<Option<u64>, GgufError> {
    metadata.whole("tokenizer.ggml.bos_token_id")
}

/// All tokens that end a text or a turn.
pub(crate) fn ends(metadata: &GgufMetadata) -> Result<Vec<u64>, GgufError> {
    let id = |name: &str| metadata.whole(&format!("tokenizer.ggml.{name}_token_id"));
    if let Some(all) = metadata.wholes(EOS_TOKEN_IDS)? {
        return Ok(all);
    }
    let mut ends: Vec<u64> = Vec::new();
    for name in ["eos", "eot", "eom"] {
        ends.extend(id(name)?.filter(|id| !ends.contains(id)));
    }
    // Few files name more than one, though instruct models have several.
    let tokens = metadata
        .strings("tokenizer.ggml.tokens")?
        .unwrap_or_default();
    for (id, token) in tokens.iter().enumerate() {
        let id = id as u64;
        if ENDS.contains(token) && !ends.contains(&id) {
            ends.push(id);
        }
    }
    Ok(ends)
}

#[cfg(test)]
mod tests;
