//! How positions rotate, as metadata and tensors of factors say it.

use candle_core::quantized::GgmlDType;
use serde_json::{Value as Json, json};

use super::{Keys, ROPE_ATTENTION};
use crate::gguf::{GgufError, GgufModel, rope_factors};
use crate::rope::Yarn;

/// The `rope_parameters` of a model all of whose layers rotate alike.
pub(super) fn parameters(file: &GgufModel, keys: &Keys<'_>) -> Result<Json, GgufError> {
    let theta = keys.real("rope.freq_base")?.unwrap_or(10_000.0);
    let mut rope = json!({"rope_type": "default", "rope_theta": theta});
    scaling(keys, &mut rope)?;
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

/// Adds scaling by a factor, as the metadata says it; a factor of no type is linear, as in llama.cpp.
pub(super) fn scaling(keys: &Keys<'_>, rope: &mut Json) -> Result<(), GgufError> {
    let kind = keys.metadata.string(&keys.key("rope.scaling.type"))?;
    let factor = keys.real("rope.scaling.factor")?;
    let untyped = factor.filter(|&factor| factor != 0.0 && factor != 1.0);
    let kind = kind.or(untyped.map(|_| "linear"));
    let Some(kind) = kind.filter(|kind| *kind != "none") else {
        return Ok(());
    };
    rope["rope_type"] = kind.into();
    rope["factor"] = factor.into();
    if kind == "yarn" {
        yarn(keys, rope)?;
    }
    Ok(())
}

/// Adds what YaRN has beyond its factor.
fn yarn(keys: &Keys<'_>, rope: &mut Json) -> Result<(), GgufError> {
    let factor = "rope.scaling.factor";
    let factor = keys.required(factor, keys.real(factor)?)?;
    let original = keys.whole("rope.scaling.original_context_length")?;
    rope["original_max_position_embeddings"] = original.into();
    for (key, name) in [
        ("beta_fast", "rope.scaling.yarn_beta_fast"),
        ("beta_slow", "rope.scaling.yarn_beta_slow"),
    ] {
        rope[key] = keys.real(name)?.into();
    }
    for (name, usual) in [
        ("rope.scaling.yarn_ext_factor", 1.0),
        ("rope.scaling.yarn_log_multiplier", 0.0),
    ] {
        let other = keys.real(name)?.filter(|&number| number != usual);
        if let Some(found) = other {
            return Err(GgufError::Key {
                key: keys.key(name),
                found: found.to_string(),
                expected: "none: of no family that is read",
            });
        }
    }
    rope["attention_factor"] = attention(keys, factor)?.into();
    Ok(())
}

/// What cosines and sines are multiplied by, where that is not what follows from `factor`. One key has it as in the
/// model's config, the other is what llama.cpp multiplies what follows by.
fn attention(keys: &Keys<'_>, factor: f64) -> Result<Option<f64>, GgufError> {
    if let Some(own) = keys.metadata.real(ROPE_ATTENTION)? {
        return Ok(Some(own));
    }
    let whole = keys.real("rope.scaling.yarn_attn_factor")?;
    let multiplier = keys.real("rope.scaling.attn_factor")?;
    if whole.is_none() && multiplier.is_none() {
        return Ok(None);
    }
    let whole = whole.unwrap_or_else(|| Yarn::attention(factor, 1.0));
    Ok(Some(whole * multiplier.unwrap_or(1.0)))
}

/// The numbers of the tensor `name`, if there is one.
fn factors(file: &GgufModel, name: &'static str) -> Result<Option<Vec<f32>>, GgufError> {
    let Some((info, bytes)) = file.tensor(name) else {
        return Ok(None);
    };
    if info.format != Some(GgmlDType::F32.into()) {
        return Err(GgufError::RopeFactors(name));
    }
    let (words, _) = bytes.as_chunks::<4>();
    Ok(Some(
        words.iter().map(|word| f32::from_le_bytes(*word)).collect(),
    ))
}
