//! How frequencies are stretched, as metadata; what is a list of factors is a tensor.

use super::single;
use crate::gguf::config::ROPE_ATTENTION;
use crate::gguf_writer::error::GgufWriteError;
use crate::gguf_writer::header::MetadataFields;
use crate::rope::{RopeScaling, Yarn};

/// Adds `scaling`, under the names that `key` makes.
pub(super) fn scaling(
    scaling: &RopeScaling,
    key: &impl Fn(&str) -> String,
    metadata: &mut MetadataFields,
) -> Result<(), GgufWriteError> {
    match scaling {
        // The latter is a tensor of factors.
        RopeScaling::Default | RopeScaling::Llama3 { .. } => {}
        RopeScaling::Linear { factor } => {
            metadata.insert(key("rope.scaling.type"), "linear");
            metadata.insert(key("rope.scaling.factor"), single("rope factor", *factor)?);
        }
        RopeScaling::Yarn(yarn) => self::yarn(yarn, key, metadata)?,
        // Its factors are tensors.
        RopeScaling::LongRope(long_rope) => {
            metadata.insert(key("rope.scaling.type"), "longrope");
            let original = long_rope.original_context_len as u32;
            metadata.insert(key("rope.scaling.original_context_length"), original);
            let attention = long_rope.attention_factor;
            metadata.insert(key("rope.scaling.attn_factor"), attention);
        }
    }
    Ok(())
}

fn yarn(
    yarn: &Yarn,
    key: &impl Fn(&str) -> String,
    metadata: &mut MetadataFields,
) -> Result<(), GgufWriteError> {
    if !yarn.truncate {
        return Err(GgufWriteError::Config {
            what: "rope's truncate",
            reason: "llama.cpp knows no YaRN without".to_owned(),
        });
    }
    metadata.insert(key("rope.scaling.type"), "yarn");
    let original = yarn.original_context_len as u32;
    metadata.insert(key("rope.scaling.original_context_length"), original);
    let factor = single("rope factor", yarn.factor)?;
    metadata.insert(key("rope.scaling.factor"), factor);
    for (what, name, number, usual) in [
        (
            "beta_fast",
            "yarn_beta_fast",
            yarn.beta_fast,
            Yarn::BETA_FAST,
        ),
        (
            "beta_slow",
            "yarn_beta_slow",
            yarn.beta_slow,
            Yarn::BETA_SLOW,
        ),
    ] {
        if number != usual {
            let number = single(what, number)?;
            metadata.insert(key(&format!("rope.scaling.{name}")), number);
        }
    }
    let usual = Yarn::attention(yarn.factor, 1.0);
    if yarn.attention_factor != usual as f32 {
        // llama.cpp multiplies what is usual by it, which rounds.
        let multiplier = f64::from(yarn.attention_factor) / usual;
        metadata.insert(key("rope.scaling.attn_factor"), multiplier as f32);
        metadata.insert(ROPE_ATTENTION, yarn.attention_factor);
    }
    Ok(())
}
