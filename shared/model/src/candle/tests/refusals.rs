//! Models that are nearly of a family.

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::Value;

use super::*;

/// `config` with the keys of `over` in place of its own.
fn changed(family: &str, over: &str) -> String {
    let mut config: Value = serde_json::from_str(&config(family, VOCAB)).unwrap();
    let over: Value = serde_json::from_str(over).unwrap();
    for (key, value) in over.as_object().unwrap() {
        config[key] = value.clone();
    }
    config.to_string()
}

/// Families, keys with other values, and what is said of them.
const CONFIGS: &str = r#"
qwen3_moe | {"model_type": "qwen2_moe"} | model type "qwen2_moe" is not supported: qwen3_moe, glm4, smollm3, phi, falcon are
qwen3_moe | {"model_type": "qwen3"} | model type "qwen3" is not supported
qwen3_moe | {"architectures": ["Qwen3MoeForSequenceClassification"]} | Qwen3MoeForCausalLM is
qwen3_moe | {"num_experts": 0} | num_experts is 0: it must be between 1
qwen3_moe | {"num_experts_per_tok": 7} | num_experts_per_tok is 7: it must be at most num_experts
qwen3_moe | {"num_experts_per_tok": 0} | num_experts_per_tok is 0
qwen3_moe | {"decoder_sparse_step": 0} | decoder_sparse_step is 0
qwen3_moe | {"mlp_only_layers": [1]} | mlp_only_layers is [1]
qwen3_moe | {"shared_expert_intermediate_size": 32} | shared_expert_intermediate_size is 32
qwen3_moe | {"use_sliding_window": true} | use_sliding_window is true
qwen3_moe | {"rope_scaling": {"rope_type": "linear", "factor": 2.0}} | rope_scaling is given
qwen3_moe | {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}} | rope_scaling is given
qwen3_moe | {"num_key_value_heads": 3} | num_key_value_heads is 3: it must divide
qwen3_moe | {"head_dim": 15} | head_dim is 15: it must be even
qwen3_moe | {"hidden_act": "gelu"} | hidden_act "gelu"
qwen3_moe | {"rms_norm_eps": 0.0} | rms_norm_eps is 0
qwen3_moe | {"rope_theta": 1.0} | rope_theta is 1
qwen3_moe | {"quantization_config": {"quant_method": "fp8"}} | quantised by "fp8"
glm4 | {"model_type": "glm"} | model type "glm"
glm4 | {"model_type": "chatglm"} | model type "chatglm"
glm4 | {"sliding_window": 128} | sliding_window is 128
glm4 | {"partial_rotary_factor": 1.0} | partial_rotary_factor is 1
glm4 | {"partial_rotary_factor": 0.2} | an even number
smollm3 | {"head_dim": 32} | head_dim is 32: engine candle takes hidden_size
smollm3 | {"no_rope_layers": [1]} | no_rope_layers is [1]
smollm3 | {"no_rope_layers": [1, 2]} | no_rope_layers is [1, 2]
smollm3 | {"no_rope_layer_interval": 0} | no_rope_layer_interval is 0
smollm3 | {"layer_types": ["full_attention", "sliding_attention"]} | layer_types is sliding_attention
phi | {"qk_layernorm": true} | qk_layernorm is true
phi | {"tie_word_embeddings": true} | tie_word_embeddings is true
phi | {"partial_rotary_factor": 1.0} | partial_rotary_factor is 1
phi | {"hidden_act": "gelu"} | hidden_act "gelu"
phi | {"layer_norm_eps": -1.0} | layer_norm_eps is -1
phi | {"rope_scaling": {"rope_type": "linear", "factor": 2.0}} | rope_scaling is given
phi | {"num_attention_heads": 5} | num_attention_heads is 5: it must divide hidden_size
phi | {"model_type": "phi-msft"} | model type "phi-msft"
falcon | {"alibi": true} | alibi is true
falcon | {"new_decoder_architecture": true} | new_decoder_architecture is true
falcon | {"multi_query": false} | multi_query is false
falcon | {"activation": "relu"} | activation is relu
falcon | {"ffn_hidden_size": 128} | ffn_hidden_size is 128: engine candle takes 4 * hidden_size
falcon | {"rope_theta": 500000.0} | rope_theta is 500000
falcon | {"max_position_embeddings": 8192} | max_position_embeddings is 8192
"#;

#[test]
fn configs_that_candle_would_compute_otherwise_are_refused_by_key() {
    let lines = CONFIGS.lines().filter(|line| !line.is_empty());
    for line in lines {
        let mut parts = line.splitn(3, " | ");
        let [family, over, said] = [(); 3].map(|()| parts.next().expect("three parts"));
        let config = changed(family, over);
        let refused = CandleConfig::from_json(config.as_bytes()).expect_err(line);
        let refused = refused.to_string();
        assert!(refused.contains(said), "{over}: {refused}");
    }
}

/// The tensors of a small mixture, some of them changed.
fn with_tensors(change: impl FnOnce(&mut Vec<(String, Vec<usize>)>)) -> Weights {
    let config = CandleConfig::from_json(config("qwen3_moe", VOCAB).as_bytes()).unwrap();
    let file = random(&config, 1).unwrap();
    let file = SafeTensors::deserialize(&file).unwrap();
    let mut tensors: Vec<_> = file
        .iter()
        .map(|(name, tensor)| (name.to_owned(), tensor.shape().to_vec()))
        .collect();
    change(&mut tensors);
    let bytes: Vec<_> = tensors
        .iter()
        .map(|(_, shape)| vec![0; 4 * shape.iter().product::<usize>()])
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape), bytes)| {
        let view = TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap();
        (name, view)
    });
    Weights::from_bytes(safetensors::serialize(views, None).unwrap()).unwrap()
}

fn refused(over: &str, weights: &Weights) -> String {
    let config = CandleConfig::from_json(changed("qwen3_moe", over).as_bytes()).unwrap();
    let (format, place) = (NumberFormat::F32, ComputeDevice::Cpu);
    let loaded = CandleModel::load(&config, weights, format, place).expect_err(over);
    let checked = CandleModel::check(&config, weights).expect_err(over);
    let words = |error: CandleError| match error {
        CandleError::Weights(error) => error.to_string(),
        error => error.to_string(),
    };
    let (loaded, checked) = (words(loaded), words(checked));
    assert_eq!(loaded, checked);
    loaded
}

#[test]
fn tensors_of_another_model_are_refused_by_name() {
    type Change = fn(&mut Vec<(String, Vec<usize>)>);
    let cases: [(&str, Change, &str); 7] = [
        (
            "{}",
            |tensors| tensors.retain(|(name, _)| !name.contains("experts.5.up_proj")),
            "tensor model.layers.1.mlp.experts.5.up_proj.weight is missing",
        ),
        (
            "{}",
            |tensors| {
                tensors.push((
                    "model.layers.1.mlp.experts.6.up_proj.weight".to_owned(),
                    vec![24, 64],
                ));
            },
            "tensors that a model of this config does not: model.layers.1.mlp.experts.6.up_proj.weight",
        ),
        (
            "{}",
            |tensors| {
                tensors.push((
                    "model.layers.1.mlp.shared_expert.up_proj.weight".to_owned(),
                    vec![24, 64],
                ));
            },
            "model.layers.1.mlp.shared_expert.up_proj.weight",
        ),
        (
            "{}",
            |tensors| tensors.push(("model.layers.0.self_attn.q_proj.bias".to_owned(), vec![64])),
            "model.layers.0.self_attn.q_proj.bias",
        ),
        (
            r#"{"num_experts": 5}"#,
            |_| {},
            "tensor model.layers.1.mlp.gate.weight has shape [6, 64], the config implies [5, 64]",
        ),
        (
            r#"{"decoder_sparse_step": 1}"#,
            |_| {},
            "tensor model.layers.0.mlp.gate.weight is missing",
        ),
        (r#"{"num_hidden_layers": 1}"#, |_| {}, "and 23 more"),
    ];
    for (over, change, said) in cases {
        let words = refused(over, &with_tensors(change));
        assert!(words.contains(said), "{words}");
    }
}

/// What files hold that no model reads, and a head that is tied.
#[test]
fn harmless_tensors_are_left_alone() {
    let weights = with_tensors(|tensors| {
        tensors.push((
            "model.layers.0.self_attn.rotary_emb.inv_freq".to_owned(),
            vec![8],
        ));
    });
    let config = changed("qwen3_moe", r#"{"tie_word_embeddings": true}"#);
    let config = CandleConfig::from_json(config.as_bytes()).unwrap();
    CandleModel::check(&config, &weights).unwrap();
}
