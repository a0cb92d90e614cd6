//! What Gemma's metadata has beyond the others'.

use serde_json::{Value as Json, json};

use super::{Keys, QUERY_SCALAR, rope};
use crate::gguf::GgufError;

/// Layers in a row of which the last sees everything, unless the file says otherwise.
const GEMMA2_PATTERN: u64 = 2;
const GEMMA3_PATTERN: u64 = 6;
/// Base of the rotation in Gemma 3's layers with a window: no file says it but new ones.
const GEMMA3_LOCAL_BASE: f64 = 10_000.0;

/// Adds it to `config`.
pub(super) fn read(keys: &Keys<'_>, config: &mut Json) -> Result<(), GgufError> {
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
    let windowed: Vec<bool> = if keys.metadata.is_array(&pattern) {
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
    let unstretched = |base: f64| json!({"rope_type": "default", "rope_theta": base});
    let rope = if gemma2 {
        unstretched(keys.real("rope.freq_base")?.unwrap_or(10_000.0))
    } else {
        let mut global = unstretched(keys.real("rope.freq_base")?.unwrap_or(1_000_000.0));
        rope::scaling(keys, &mut global)?;
        let local = keys
            .real("rope.freq_base_swa")?
            .unwrap_or(GEMMA3_LOCAL_BASE);
        json!({"full_attention": global, "sliding_attention": unstretched(local)})
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
