//! Decoders as Llama is one, with windows, biases and norms of their own.

use candle_core::Device;
use candle_transformers::models::{llama, mistral, qwen2, qwen3, smol};
use serde_json::{Value, json};

use super::{
    Family, TEXT,
    configs::{base, input, logits, read, with_candles_window},
};

pub(super) const LLAMA: Family = Family {
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
        let mut cache = llama::Cache::new(false, candle_core::DType::F32, &config, &Device::Cpu)?;
        let model = llama::Llama::load(weights.builder(), &config)?;
        logits(&model.forward(&input(tokens)?, 0, &mut cache)?)
    },
    faults: &[("rope_theta", "20000.0"), ("rms_norm_eps", "0.01")],
};

pub(super) const MISTRAL: Family = Family {
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
};

pub(super) const QWEN2: Family = Family {
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
};

pub(super) const QWEN3: Family = Family {
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
};

pub(super) const SMOLLM3: Family = Family {
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
};
