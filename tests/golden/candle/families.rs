//! The families: configurations of each, and candle's models of them.

use candle_core::{Device, Result, Tensor};
use candle_transformers::models::{
    gemma2, gemma3, glm4_new, granite, llama, mistral, olmo2, phi3, qwen2, qwen3, smol, t5,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use speculation::TokenId;

use super::weights::RandomWeights;
use super::{TEXT, VOCAB};

/// Tokens of a source.
const T5_SOURCE: usize = TEXT - 8;

/// Numbers of a T5 model's hidden state.
const T5_HIDDEN: usize = 32;

/// A family of models.
pub(super) struct Family {
    pub(super) name: &'static str,
    /// Whether norms multiply by 1 and their weight.
    pub(super) norm_plus_one: bool,
    /// Tokens at the beginning of a text that are an encoder's source.
    pub(super) source_len: usize,
    /// Largest difference, as a multiple of the largest logit or of 1.
    pub(super) tolerance: f32,
    /// The `config.json` of a variant.
    pub(super) config: fn(u64) -> Value,
    /// Candle's logits at the last position.
    pub(super) candle: fn(&Value, &RandomWeights, &[TokenId]) -> Result<Vec<f32>>,
    /// Keys with values that make another model of variant 0.
    pub(super) faults: &'static [(&'static str, &'static str)],
}

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "llama",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("llama", variant);
            config.as_object_mut().unwrap().remove("head_dim");
            config["tie_word_embeddings"] = json!(variant % 2 == 1);
            if variant >= 2 {
                config["rope_scaling"] = json!({
                    "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0, "original_max_position_embeddings": 16 << (variant % 3),
                });
            }
            config
        },
        candle: |config, weights, tokens| {
            let config = read::<llama::LlamaConfig>(config).into_config(false);
            let mut cache =
                llama::Cache::new(false, candle_core::DType::F32, &config, &Device::Cpu)?;
            let model = llama::Llama::load(weights.builder(), &config)?;
            logits(&model.forward(&input(tokens)?, 0, &mut cache)?)
        },
        faults: &[("rope_theta", "20000.0"), ("rms_norm_eps", "0.01")],
    },
    Family {
        name: "mistral",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("mistral", variant);
            config["sliding_window"] = if variant % 3 == 2 {
                Value::Null
            } else {
                json!(7 + variant)
            };
            config
        },
        candle: |config, weights, tokens| {
            let config: mistral::Config = read(&with_candles_window(config));
            let mut model = mistral::Model::new(&config, weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[("sliding_window", "8"), ("rope_theta", "20000.0")],
    },
    Family {
        name: "qwen2",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("qwen2", variant);
            config.as_object_mut().unwrap().remove("head_dim");
            config["tie_word_embeddings"] = json!(variant % 2 == 0);
            config["use_sliding_window"] = json!(variant < 3);
            config["sliding_window"] = json!(if variant < 3 { 9 } else { 10 * TEXT });
            config["max_window_layers"] = json!(0);
            config
        },
        candle: |config, weights, tokens| {
            let config: qwen2::Config = read(&with_candles_window(config));
            let mut model = qwen2::ModelForCausalLM::new(&config, weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[("sliding_window", "8"), ("use_sliding_window", "false")],
    },
    Family {
        name: "qwen3",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("qwen3", variant);
            config["tie_word_embeddings"] = json!(variant % 2 == 0);
            config["attention_bias"] = json!(variant >= 3);
            config["use_sliding_window"] = json!(false);
            config["sliding_window"] = Value::Null;
            config["max_window_layers"] = json!(0);
            config
        },
        candle: |config, weights, tokens| {
            let mut model = qwen3::ModelForCausalLM::new(&read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[("rope_theta", "20000.0"), ("rms_norm_eps", "0.01")],
    },
    Family {
        name: "smollm3",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("smollm3", variant);
            config.as_object_mut().unwrap().remove("head_dim");
            config["tie_word_embeddings"] = json!(variant % 2 == 0);
            config["attention_bias"] = json!(variant >= 3);
            config["no_rope_layer_interval"] = json!(1 + variant % 3);
            if variant % 3 == 1 {
                config["no_rope_layers"] = json!([0, 1, 1]);
            }
            config
        },
        candle: |config, weights, tokens| {
            let config = read(config);
            let mut model = smol::smollm3::ModelForCausalLM::new(&config, weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[("no_rope_layer_interval", "2"), ("rms_norm_eps", "0.01")],
    },
    Family {
        name: "granite",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("granite", variant);
            config.as_object_mut().unwrap().remove("head_dim");
            config["tie_word_embeddings"] = json!(variant % 2 == 0);
            config["attention_bias"] = json!(variant >= 3);
            config["mlp_bias"] = json!(variant >= 4);
            let number = variant as f64;
            config["embedding_multiplier"] = json!(12.0 - number);
            config["attention_multiplier"] = json!(0.1 + 0.1 * number);
            config["residual_multiplier"] = json!(0.22 + 0.2 * number);
            config["logits_scaling"] = json!(0.3 + 0.2 * number);
            config
        },
        candle: |config, weights, tokens| {
            let folded = weights.builder_times(granites_multipliers(config));
            if config["attention_bias"] == false {
                let config = read::<granite::GraniteConfig>(config).into_config(false);
                let mut cache =
                    granite::Cache::new(false, candle_core::DType::F32, &config, &Device::Cpu)?;
                let model = granite::Granite::load(folded, &config)?;
                return logits(&model.forward(&input(tokens)?, 0, &mut cache)?);
            }
            let mut config = config.clone();
            config["tie_word_embeddings"] = json!(false);
            config["no_rope_layer_interval"] = json!(TEXT);
            let mut model = smol::smollm3::ModelForCausalLM::new(&read(&config), folded)?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[
            ("embedding_multiplier", "1.0"),
            ("attention_multiplier", "0.3535533905932738"),
            ("residual_multiplier", "1.0"),
            ("logits_scaling", "1.0"),
        ],
    },
    Family {
        name: "olmo2",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("olmo2", variant);
            config.as_object_mut().unwrap().remove("head_dim");
            config["tie_word_embeddings"] = json!(variant % 2 == 1);
            config["attention_bias"] = json!(variant >= 3);
            config
        },
        candle: |config, weights, tokens| {
            let mut model = olmo2::Model::new(&read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[("rope_theta", "20000.0"), ("rms_norm_eps", "0.01")],
    },
    Family {
        name: "glm4",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("glm4", variant);
            // Of heads of 8 and of 12 dimensions.
            config["partial_rotary_factor"] = json!(if variant == 4 { 0.25 } else { 0.5 });
            config["attention_bias"] = json!(variant % 3 != 0);
            config["tie_word_embeddings"] = json!(variant % 2 == 1);
            config["eos_token_id"] = json!([2, 3]);
            config
        },
        candle: |config, weights, tokens| {
            let mut model = glm4_new::ModelForCausalLM::new(&read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[
            ("partial_rotary_factor", "0.25"),
            ("partial_rotary_factor", "1.0"),
            ("rope_theta", "20000.0"),
            ("rms_norm_eps", "0.01"),
        ],
    },
    Family {
        name: "gemma2",
        norm_plus_one: true,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = gemma("gemma2", variant);
            config["sliding_window"] = json!(10 * TEXT);
            config["attn_logit_softcapping"] = json!([1.5, 50.0][(variant % 2) as usize]);
            config["final_logit_softcapping"] = if variant % 3 == 2 {
                Value::Null
            } else {
                json!(2.0)
            };
            config
        },
        candle: |config, weights, tokens| {
            let mut model = gemma2::Model::new(false, &read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[
            ("attn_logit_softcapping", "null"),
            ("final_logit_softcapping", "3.0"),
            ("query_pre_attn_scalar", "20"),
        ],
    },
    Family {
        name: "gemma3",
        norm_plus_one: true,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = gemma("gemma3_text", variant);
            config["sliding_window"] = json!(7 + variant);
            config["sliding_window_pattern"] = json!(2 + variant % 2);
            config["rope_local_base_freq"] = json!(1000.0);
            config["attn_logit_softcapping"] = Value::Null;
            config["final_logit_softcapping"] = Value::Null;
            config
        },
        candle: |config, weights, tokens| {
            let mut model = gemma3::Model::new(false, &read(config), weights.builder())?;
            let mut rows = None;
            for (at, token) in tokens.iter().enumerate() {
                rows = Some(model.forward(&input(&[*token])?, at)?);
            }
            logits(&rows.unwrap())
        },
        faults: &[
            ("sliding_window", "8"),
            ("sliding_window_pattern", "3"),
            ("rope_local_base_freq", "2000.0"),
        ],
    },
    Family {
        name: "phi3",
        norm_plus_one: false,
        source_len: 0,
        tolerance: 1e-4,
        config: |variant| {
            let mut config = base("phi3", variant);
            config["head_dim"] = json!(8);
            config["tie_word_embeddings"] = json!(variant % 2 == 0);
            let dims = if variant >= 3 { 4 } else { 8 };
            config["partial_rotary_factor"] = json!(f64::from(dims) / 8.0);
            if variant >= 1 {
                // Candle rotates by position: the first one alone, which does not turn, is in an original context of
                // one token.
                let original = if variant % 2 == 0 { 1 } else { 20 * TEXT };
                config["original_max_position_embeddings"] = json!(original);
                let factors = |first: f64| -> Vec<f64> {
                    (0..dims / 2).map(|i| first + 0.3 * f64::from(i)).collect()
                };
                config["rope_scaling"] = json!({
                    "type": "longrope", "short_factor": factors(1.1), "long_factor": factors(1.7),
                    "attention_factor": 1.0,
                });
            }
            config
        },
        candle: |config, weights, tokens| {
            let config: phi3::Config = read(&with_candles_factors(config));
            let mut model = phi3::Model::new(&config, weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[
            ("rope_theta", "20000.0"),
            ("partial_rotary_factor", "0.5"),
            ("sliding_window", "30"),
        ],
    },
    Family {
        name: "t5",
        norm_plus_one: false,
        source_len: T5_SOURCE,
        tolerance: 2e-3,
        config: |variant| {
            json!({
                "model_type": "t5",
                "vocab_size": VOCAB,
                "d_model": T5_HIDDEN,
                "d_kv": 8 + 4 * (variant % 2),
                "d_ff": 56,
                "num_layers": 2,
                "num_decoder_layers": 2 + variant % 2,
                "num_heads": 4,
                "relative_attention_num_buckets": 32 + 4 * (variant % 3),
                "relative_attention_max_distance": 30,
                "dropout_rate": 0.0,
                "initializer_factor": 1.0,
                "layer_norm_epsilon": 1e-6,
                "feed_forward_proj": (if variant % 2 == 0 { "relu" } else { "gated-gelu" }),
                "tie_word_embeddings": variant < 3,
                "is_encoder_decoder": true,
                "decoder_start_token_id": 0,
                "pad_token_id": 0,
                "eos_token_id": 1,
            })
        },
        candle: |config, weights, tokens| {
            let (source, tokens) = tokens.split_at(T5_SOURCE);
            let mut model = t5::T5ForConditionalGeneration::load(weights.builder(), &read(config))?;
            let rows = model.forward(&input(source)?, &input(tokens)?)?;
            let tied = config["tie_word_embeddings"] == true;
            let too_large = if tied { T5_HIDDEN as f64 } else { 1.0 };
            logits(&(rows / too_large)?)
        },
        faults: &[
            ("relative_attention_max_distance", "40"),
            ("layer_norm_epsilon", "0.1"),
        ],
    },
];

/// What all files have, with one to four query heads for each head of keys and values.
pub(super) fn base(model_type: &str, variant: u64) -> Value {
    let kv_heads = [2, 1, 4][(variant % 3) as usize];
    json!({
        "model_type": model_type,
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 56,
        "num_hidden_layers": 2 + variant % 2,
        "num_attention_heads": 4,
        "num_key_value_heads": kv_heads,
        "head_dim": 8 + 4 * (variant % 2),
        "hidden_act": "silu",
        "max_position_embeddings": 20 * TEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0 * (1.0 + variant as f64),
        "tie_word_embeddings": false,
        "bos_token_id": 1,
        "eos_token_id": 2,
    })
}

fn gemma(model_type: &str, variant: u64) -> Value {
    let mut config = base(model_type, variant);
    config["num_hidden_layers"] = json!(4);
    config["attention_bias"] = json!(variant >= 4);
    config["hidden_activation"] = json!("gelu_pytorch_tanh");
    config["query_pre_attn_scalar"] = config["head_dim"].clone();
    config["tie_word_embeddings"] = json!(true);
    config
}

/// What Granite's constants make of each tensor, were they a part of the weights.
fn granites_multipliers(config: &Value) -> impl Fn(&str) -> f64 + Send + Sync + 'static {
    let number = |key: &str| config[key].as_f64().unwrap();
    let heads = number("hidden_size") / number("num_attention_heads");
    let scores = number("attention_multiplier") * heads.sqrt();
    let (embedding, block) = (
        number("embedding_multiplier"),
        number("residual_multiplier"),
    );
    let logits = 1.0 / number("logits_scaling");
    move |name| match name.split('.').rev().nth(1) {
        Some("embed_tokens") => embedding,
        Some("q_proj") => scores,
        Some("o_proj" | "down_proj") => block,
        Some("lm_head") => logits,
        _ => 1.0,
    }
}

/// The same, where the window means to candle what it means to the model.
fn with_candles_window(config: &Value) -> Value {
    let mut config = config.clone();
    if let Some(window) = config["sliding_window"].as_u64() {
        config["sliding_window"] = json!(window - 1);
    }
    config
}

/// The same, where factors of frequencies mean to candle what they mean to the model.
fn with_candles_factors(config: &Value) -> Value {
    let mut config = config.clone();
    let Value::Object(scaling) = &mut config["rope_scaling"] else {
        return config;
    };
    for key in ["short_factor", "long_factor"] {
        for factor in scaling[key].as_array_mut().unwrap() {
            *factor = json!(1.0 / factor.as_f64().unwrap());
        }
    }
    config
}

pub(super) fn read<T: DeserializeOwned>(config: &Value) -> T {
    serde_json::from_value(config.clone()).unwrap()
}

pub(super) fn input(tokens: &[TokenId]) -> Result<Tensor> {
    Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)
}

pub(super) fn logits(rows: &Tensor) -> Result<Vec<f32>> {
    let rows = rows.flatten_all()?.to_vec1::<f32>()?;
    Ok(rows[rows.len() - VOCAB..].to_vec())
}
