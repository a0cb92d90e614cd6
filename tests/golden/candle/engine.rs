//! Engine candle against candle-transformers' own models, which are given the text in one go and answer with their last
//! row: reading of configs, rows of all positions, and ways of cutting a text must not change a number. So it is with the
//! models that give the last row only, of which the engine makes the rows of all positions token by token.

use candle_core::Result;
use candle_transformers::models::{falcon, glm4_new, phi, qwen3_moe, smol::smollm3};
use model::candle::{CandleConfig, CandleModel};
use model::weights::Weights;
use model::{ComputeDevice, NumberFormat};
use serde_json::{Value, json};
use speculation::TokenId;
use speculation::ports::LanguageModel;

use super::families::{base, input, logits, read};
use super::weights::RandomWeights;
use super::{TEXT, VARIANTS, VOCAB, extend, text};

/// A family that engine candle computes.
struct Family {
    name: &'static str,
    /// The `config.json` of a variant, with all keys that candle's own config has.
    config: fn(u64) -> Value,
    /// Candle's logits at the last position.
    candle: fn(&Value, &RandomWeights, &[TokenId]) -> Result<Vec<f32>>,
    /// Keys with values that make another model of variant 0.
    faults: &'static [(&'static str, &'static str)],
}

const FAMILIES: [Family; 5] = [
    Family {
        name: "qwen3_moe",
        config: |variant| {
            let mut config = base("qwen3_moe", variant);
            config["tie_word_embeddings"] = json!(variant % 2 == 1);
            config["attention_bias"] = json!(variant >= 3);
            config["use_sliding_window"] = json!(false);
            config["max_window_layers"] = json!(0);
            config["moe_intermediate_size"] = json!(24);
            config["num_experts"] = json!(5 + variant);
            config["num_experts_per_tok"] = json!(2 + variant % 3);
            config["norm_topk_prob"] = json!(variant % 2 == 0);
            config["decoder_sparse_step"] = json!(1 + variant % 2);
            config
        },
        candle: |config, weights, tokens| {
            let mut model = qwen3_moe::ModelForCausalLM::new(&read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[
            ("num_experts_per_tok", "1"),
            ("norm_topk_prob", "false"),
            ("rope_theta", "20000.0"),
        ],
    },
    Family {
        name: "glm4",
        config: |variant| {
            let mut config = base("glm4", variant);
            // Of heads of 8 and of 12 dimensions.
            config["partial_rotary_factor"] = json!(0.5);
            config["attention_bias"] = json!(variant >= 3);
            config["tie_word_embeddings"] = json!(variant % 2 == 1);
            config["eos_token_id"] = json!([2, 3]);
            config
        },
        candle: |config, weights, tokens| {
            let mut model = glm4_new::ModelForCausalLM::new(&read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[("partial_rotary_factor", "0.25"), ("rms_norm_eps", "0.01")],
    },
    Family {
        name: "smollm3",
        config: |variant| {
            let mut config = base("smollm3", variant);
            config["head_dim"] = json!(8);
            config["attention_bias"] = json!(variant >= 3);
            config["mlp_bias"] = json!(variant % 3 == 1);
            config["tie_word_embeddings"] = json!(variant % 2 == 0);
            if variant % 2 == 0 {
                config["no_rope_layer_interval"] = json!(2);
            } else {
                config["no_rope_layers"] = json!([0, 1, 1][..2 + (variant % 2) as usize]);
            }
            config
        },
        candle: |config, weights, tokens| {
            let mut model = smollm3::ModelForCausalLM::new(&read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?, 0)?)
        },
        faults: &[("no_rope_layer_interval", "3"), ("rope_theta", "20000.0")],
    },
    Family {
        name: "phi",
        config: |variant| {
            let mut config = base("phi", variant);
            config["hidden_act"] = json!("gelu_new");
            config["layer_norm_eps"] = json!(1e-5);
            // Of heads of 8 dimensions.
            config["partial_rotary_factor"] = json!([0.5, 0.25, 0.75][(variant % 3) as usize]);
            config["qk_layernorm"] = json!(false);
            config
        },
        candle: |config, weights, tokens| {
            let mut model = phi::Model::new(&read(config), weights.builder())?;
            logits(&model.forward(&input(tokens)?)?)
        },
        faults: &[
            ("partial_rotary_factor", "0.25"),
            ("layer_norm_eps", "0.01"),
            ("rope_theta", "20000.0"),
        ],
    },
    Family {
        name: "falcon",
        config: |variant| {
            let mut config = base("falcon", variant);
            config["rope_theta"] = json!(10_000.0);
            config["tie_word_embeddings"] = json!(variant % 2 == 1);
            config["bias"] = json!(variant >= 3);
            config["parallel_attn"] = json!(variant % 3 != 2);
            for (key, value) in [
                ("alibi", json!(false)),
                ("multi_query", json!(true)),
                ("new_decoder_architecture", json!(false)),
                ("layer_norm_epsilon", json!(1e-5)),
                ("initializer_range", json!(0.02)),
                ("use_cache", json!(true)),
                ("hidden_dropout", json!(0.0)),
                ("attention_dropout", json!(0.0)),
            ] {
                config[key] = value;
            }
            config
        },
        candle: |config, weights, tokens| {
            let mut model = falcon::Falcon::load(weights.builder(), read(config))?;
            logits(&model.forward(&input(tokens)?)?)
        },
        faults: &[("layer_norm_epsilon", "0.01")],
    },
];

/// The rows of `tokens`, forwarded `cut` at a time.
fn rows(config: &Value, weights: &RandomWeights, tokens: &[TokenId], cut: usize) -> Vec<f32> {
    let config = CandleConfig::from_json(config.to_string().as_bytes()).unwrap();
    let weights = Weights::from_bytes(weights.file()).unwrap();
    let (format, place) = (NumberFormat::F32, ComputeDevice::Cpu);
    let mut model = CandleModel::load(&config, &weights, format, place).unwrap();
    let mut cache = model.new_cache();
    let rows = tokens.chunks(cut);
    rows.flat_map(|some| extend(&mut model, &mut cache, some).0)
        .collect()
}

fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0_f32, f32::max)
}

#[test]
fn rows_of_all_positions_are_those_of_candle_in_one_go() {
    for family in FAMILIES {
        for variant in 0..VARIANTS {
            let (config, tokens) = ((family.config)(variant), text(variant));
            let tied = config["tie_word_embeddings"] == true;
            let weights = RandomWeights::new(variant, false, tied);
            let lens = [1, 2, 17, TEXT];
            let expected =
                lens.map(|len| (family.candle)(&config, &weights, &tokens[..len]).unwrap());
            for cut in [1, 5, TEXT] {
                let rows = rows(&config, &weights, &tokens, cut);
                for (len, expected) in lens.into_iter().zip(&expected) {
                    let found = difference(&rows[(len - 1) * VOCAB..][..VOCAB], expected);
                    let what = format!("{} {config}, row {len}, {cut} at a time", family.name);
                    assert!(found <= 1e-4, "{what}: {found}");
                }
            }
        }
    }
}

/// Otherwise the comparison above would show nothing.
#[test]
fn another_configuration_gives_other_rows() {
    for family in FAMILIES {
        for &(key, value) in family.faults {
            let (mut config, tokens) = ((family.config)(0), text(0));
            let tied = config["tie_word_embeddings"] == true;
            let weights = RandomWeights::new(0, false, tied);
            let expected = (family.candle)(&config, &weights, &tokens).unwrap();
            config[key] = serde_json::from_str(value).unwrap();
            let rows = rows(&config, &weights, &tokens, TEXT);
            let found = difference(&rows[(TEXT - 1) * VOCAB..], &expected);
            assert!(found > 1e-3, "{} with {key} {value}: {found}", family.name);
        }
    }
}
