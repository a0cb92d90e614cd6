//! How positions rotate, from metadata and tensors.

use candle_core::quantized::GgmlDType;
use serde_json::{Value as Json, json};

use super::Keys;
use crate::gguf::{container::Container, error::GgufError, rope_factors};

/// How positions rotate.
pub(super) fn read(file: &Container, keys: &Keys<'_>) -> Result<Json, GgufError> {
    let theta = keys.real("rope.freq_base")?.unwrap_or(10_000.0);
    let mut rope = json!({"rope_type": "default", "rope_theta": theta});
    scale(keys, &mut rope)?;
    let long = [
        factors(file, rope_factors::SHORT)?,
        factors(file, rope_factors::LONG)?,
    ];
    if let [Some(short), Some(long)] = long {
        rope["rope_type"] = "longrope".into();
        rope["short_factor"] = short.into();
        rope["long_factor"] = long.into();
        let original = "rope.scaling.original_context_length";
        let original = keys.required(original, keys.whole(original)?)?;
        rope["original_max_position_embeddings"] = original.into();
        rope["attention_factor"] = keys.real("rope.scaling.attn_factor")?.into();
    }
    if let Some(factors) = factors(file, rope_factors::LLAMA3)? {
        rope_factors::read(&factors, theta, &mut rope)?;
    }
    Ok(rope)
}

/// The numbers of the tensor `name`, if there is one.
fn factors(file: &Container, name: &'static str) -> Result<Option<Vec<f32>>, GgufError> {
    let Some((info, bytes)) = file.tensors.get(name) else {
        return Ok(None);
    };
    if info.format != Some(GgmlDType::F32) {
        return Err(GgufError::RopeFactors(name));
    }
    let (words, _) = bytes.as_chunks::<4>();
    Ok(Some(
        words.iter().map(|word| f32::from_le_bytes(*word)).collect(),
    ))
}

/// Adds scaling by a factor, as the metadata says it.
pub(super) fn scale(keys: &Keys<'_>, rope: &mut Json) -> Result<(), GgufError> {
    let kind = keys.metadata.string(&keys.key("rope.scaling.type"))?;
    if let Some(kind) = kind.filter(|kind| *kind != "none") {
        rope["rope_type"] = kind.into();
        rope["factor"] = keys.real("rope.scaling.factor")?.into();
    }
    Ok(())
}
