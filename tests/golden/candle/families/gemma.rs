//! The decoders called Gemma.

use candle_transformers::models::{gemma2, gemma3};
use serde_json::{Value, json};

use super::{
    Family, TEXT,
    configs::{base, input, logits, read},
};

pub(super) const GEMMA2: Family = Family {
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
};

pub(super) const GEMMA3: Family = Family {
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
};

fn gemma(model_type: &str, variant: u64) -> Value {
    let mut config = base(model_type, variant);
    config["num_hidden_layers"] = json!(4);
    config["attention_bias"] = json!(variant >= 4);
    config["hidden_activation"] = json!("gelu_pytorch_tanh");
    config["query_pre_attn_scalar"] = config["head_dim"].clone();
    config["tie_word_embeddings"] = json!(true);
    config
}
