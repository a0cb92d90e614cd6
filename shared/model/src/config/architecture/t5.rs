//! T5 (Raffel et al. 2020), original and v1.1 (Shazeer 2020), and so FLAN-T5: an encoder reads the
//! source, a decoder writes.

use super::{CheckpointForm, ModelFamily};
use crate::config::{
    Activation, Architecture, EncoderConfig, ModelConfig, ModelConfigError, RawConfig,
};

pub(super) static FAMILY: ModelFamily = ModelFamily {
    architecture: Architecture::T5,
    model_types: &["t5"],
    // The second is what releases of 2019 and 2020 called the first.
    classes: &["T5ForConditionalGeneration", "T5WithLMHeadModel"],
    read,
    keys: &KEYS,
    form: CheckpointForm::USUAL,
    gguf: None,
};

/// What these files call sizes and constants that have other names in those of other families.
const KEYS: [(&str, &str); 7] = [
    ("hidden_size", "d_model"),
    ("intermediate_size", "d_ff"),
    ("num_hidden_layers", "num_decoder_layers"),
    ("num_attention_heads", "num_heads"),
    ("head_dim", "d_kv"),
    ("max_position_embeddings", "n_positions"),
    ("rms_norm_eps", "layer_norm_epsilon"),
];

/// Tokens that source and output may have where `n_positions` names no more. Relative distances know no
/// longest sequence, and published files say 512 of models that are used far beyond, so this is a bound
/// on memory only.
const CONTEXT_LEN: usize = 4096;

fn read(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let layers = raw.required("num_layers")?;
    let (hidden_size, heads) = (raw.required("d_model")?, raw.required("num_heads")?);
    let function: Option<String> = raw.optional("feed_forward_proj")?;
    let (gated, activation) = feed_forward(function.as_deref().unwrap_or("relu"))?;
    let tied = raw.optional("tie_word_embeddings")?.unwrap_or(true);
    // Old files have no key of its own for this: v1.1 was told by its untied head.
    let scaled = raw.optional("scale_decoder_outputs")?.unwrap_or(tied);
    let ends = raw.tokens("eos_token_id")?;
    let start = [(raw, "decoder_start_token_id"), (raw, "pad_token_id")];
    let positions: Option<usize> = raw.optional("n_positions")?;
    Ok(ModelConfig {
        architecture: Architecture::T5,
        vocab_size: raw.required("vocab_size")?,
        hidden_size,
        intermediate_size: raw.required("d_ff")?,
        layers: raw.optional("num_decoder_layers")?.unwrap_or(layers),
        heads,
        kv_heads: heads,
        head_dim: raw.required("d_kv")?,
        rms_norm_eps: raw.optional("layer_norm_epsilon")?.unwrap_or(1e-6),
        activation,
        gated,
        attention_scale: 1.0,
        output_scale: scaled.then(|| 1.0 / (hidden_size as f32).sqrt()),
        rope: None,
        context_len: positions.unwrap_or(0).max(CONTEXT_LEN),
        tie_word_embeddings: tied,
        encoder: Some(EncoderConfig {
            layers,
            relative_buckets: raw
                .optional("relative_attention_num_buckets")?
                .unwrap_or(32),
            relative_max_distance: raw
                .optional("relative_attention_max_distance")?
                .unwrap_or(128),
            decoder_start_token_id: RawConfig::either(start)?.unwrap_or(0),
        }),
        eos_token_ids: if ends.is_empty() { vec![1] } else { ends },
        ..ModelConfig::llama()
    })
}

/// Whether the feed-forward network is gated, and its function.
fn feed_forward(name: &str) -> Result<(bool, Activation), ModelConfigError> {
    let (gated, function) = match name.strip_prefix("gated-") {
        Some(function) => (true, function),
        None => (false, name),
    };
    let activation = match function {
        "relu" => Activation::Relu,
        "silu" => Activation::Silu,
        "gelu_new" => Activation::GeluTanh,
        // Only in this name: v1.1 was trained with the approximation, and published without saying so.
        "gelu" if gated => Activation::GeluTanh,
        _ => {
            return Err(ModelConfigError::invalid(
                "feed_forward_proj",
                name,
                "relu, silu, gelu_new, and gated-relu, gated-silu, gated-gelu are supported",
            ));
        }
    };
    Ok((gated, activation))
}

/// Names and shapes of a checkpoint's tensors.
pub(crate) fn shapes(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
    let inner = config.heads * config.head_dim;
    let encoder = config
        .encoder
        .map_or((0, 0), |encoder| (encoder.layers, encoder.relative_buckets));
    let mut shapes = vec![("shared.weight".to_owned(), vec![config.vocab_size, hidden])];
    if !config.tie_word_embeddings {
        shapes.push(("lm_head.weight".to_owned(), vec![config.vocab_size, hidden]));
    }
    let stacks = [
        ("encoder", encoder.0, &["SelfAttention"][..]),
        (
            "decoder",
            config.layers,
            &["SelfAttention", "EncDecAttention"],
        ),
    ];
    for (stack, layers, attentions) in stacks {
        shapes.push((format!("{stack}.final_layer_norm.weight"), vec![hidden]));
        for block in 0..layers {
            let block = format!("{stack}.block.{block}");
            for (sublayer, attention) in attentions.iter().enumerate() {
                let layer = format!("{block}.layer.{sublayer}");
                shapes.push((format!("{layer}.layer_norm.weight"), vec![hidden]));
                for projection in ["q", "k", "v"] {
                    let name = format!("{layer}.{attention}.{projection}.weight");
                    shapes.push((name, vec![inner, hidden]));
                }
                shapes.push((format!("{layer}.{attention}.o.weight"), vec![hidden, inner]));
            }
            let layer = format!("{block}.layer.{}", attentions.len());
            let dense = format!("{layer}.DenseReluDense");
            let inputs: &[_] = if config.gated {
                &["wi_0", "wi_1"]
            } else {
                &["wi"]
            };
            shapes.push((format!("{layer}.layer_norm.weight"), vec![hidden]));
            shapes.extend(
                inputs
                    .iter()
                    .map(|name| (format!("{dense}.{name}.weight"), vec![ffn, hidden])),
            );
            shapes.push((format!("{dense}.wo.weight"), vec![hidden, ffn]));
        }
        shapes.push((relative_bias(stack), vec![encoder.1, config.heads]));
    }
    shapes
}

/// Name of the relative position bias of a stack, which its first layer holds for all.
pub(crate) fn relative_bias(stack: &str) -> String {
    format!("{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight")
}

#[cfg(test)]
pub(crate) mod tests;
