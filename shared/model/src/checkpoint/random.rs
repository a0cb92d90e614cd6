//! Weights of a model that was never trained.

use std::collections::BTreeMap;

use safetensors::{Dtype, serialize, tensor::TensorView};

use crate::{config::ModelConfig, weights::WeightsError};

/// A safetensors file with every tensor that `config` implies. Matrices are uniform with the
/// variance 1 / inputs, so that hidden states neither vanish nor explode; norms are 1, biases 0.
pub(super) fn weights(config: &ModelConfig, seed: u64) -> Result<Vec<u8>, WeightsError> {
    let mut generator = SplitMix(seed);
    let data: BTreeMap<String, (Vec<usize>, Vec<u8>)> = shapes(config)
        .into_iter()
        .map(|(name, shape)| {
            let count = shape.iter().product::<usize>();
            let values: Vec<f32> = match shape[..] {
                [_, inputs] => {
                    let width = (3.0 / inputs as f32).sqrt();
                    (0..count)
                        .map(|_| width * generator.next_signed())
                        .collect()
                }
                _ if name.contains("norm") => vec![1.0; count],
                _ => vec![0.0; count],
            };
            let bytes = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            (name, (shape, bytes))
        })
        .collect();
    let malformed = |error: safetensors::SafeTensorError| WeightsError::Malformed {
        file: "a file of random weights".to_owned(),
        reason: error.to_string(),
    };
    let views = data
        .iter()
        .map(|(name, (shape, bytes))| {
            Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(malformed)?;
    serialize(views, None).map_err(malformed)
}

/// Names and shapes of a checkpoint's tensors.
fn shapes(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
    let query = config.heads * config.head_dim;
    let kv = config.kv_heads * config.head_dim;
    let mut shapes = vec![
        (
            "model.embed_tokens.weight".to_owned(),
            vec![config.vocab_size, hidden],
        ),
        ("model.norm.weight".to_owned(), vec![hidden]),
    ];
    if !config.tie_word_embeddings {
        shapes.push(("lm_head.weight".to_owned(), vec![config.vocab_size, hidden]));
    }
    for layer in 0..config.layers {
        for norm in ["input_layernorm", "post_attention_layernorm"] {
            shapes.push((format!("model.layers.{layer}.{norm}.weight"), vec![hidden]));
        }
        for (part, outputs, inputs, has_bias) in [
            ("self_attn.q_proj", query, hidden, config.attention_bias),
            ("self_attn.k_proj", kv, hidden, config.attention_bias),
            ("self_attn.v_proj", kv, hidden, config.attention_bias),
            ("self_attn.o_proj", hidden, query, config.attention_bias),
            ("mlp.gate_proj", ffn, hidden, config.mlp_bias),
            ("mlp.up_proj", ffn, hidden, config.mlp_bias),
            ("mlp.down_proj", hidden, ffn, config.mlp_bias),
        ] {
            let name = format!("model.layers.{layer}.{part}");
            shapes.push((format!("{name}.weight"), vec![outputs, inputs]));
            if has_bias {
                shapes.push((format!("{name}.bias"), vec![outputs]));
            }
        }
    }
    shapes
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [-1, 1).
    fn next_signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }
}
