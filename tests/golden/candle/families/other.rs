//! Decoders whose blocks, constants or ropes are others.

use candle_core::Device;
use candle_transformers::models::{glm4_new, granite, olmo2, phi3, smol};
use serde_json::{Value, json};

use super::{
    Family, TEXT,
    configs::{base, input, logits, read},
};

pub(super) const GRANITE: Family = Family {
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
};

pub(super) const OLMO2: Family = Family {
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
};

pub(super) const GLM4: Family = Family {
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
};

pub(super) const PHI3: Family = Family {
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
};

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
