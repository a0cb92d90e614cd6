//! Random models of every family against candle-transformers, a second implementation: the same `config.json`, the
//! same weights, the logits at the last position. The golden models fix a few configurations; these vary heads,
//! windows, rotations, biases, tied embeddings and soft caps.
//!
//! What candle computes otherwise than the models' own code is given to it in another form, or left out:
//!
//! | family | what candle 0.11 does | here |
//! |---|---|---|
//! | mistral, qwen2 | sees one token more than the window holds | it is given a window of one less |
//! | llama | reads no `head_dim`, no biases and of rope scalings llama3 alone | none of them varied |
//! | mistral | never ties embeddings | untied |
//! | qwen2 | windows every layer, whatever `use_sliding_window` and `max_window_layers` say | all layers or, by a window longer than the text, none |
//! | qwen3 | ignores windows on a CPU | none |
//! | smollm3 | reads no `head_dim`, no rope scaling and no window | none of them varied |
//! | granite | knows no multiplier, and ties no embeddings | they are multiplied into the weights that it is given |
//! | granite | reads no biases, no `head_dim` and of rope scalings llama3 alone | with biases it is candle's SmolLM3 that computes; the others are not varied |
//! | olmo2 | reads no `head_dim` and no rope scaling | none of them varied |
//! | glm4 | reads no rope scaling, and rotates no whole head | neither varied |
//! | gemma2 | windows every layer instead of every second | none, by a window longer than the text |
//! | gemma3 | takes no prompt of several tokens where there are several heads of keys and values | one token after the other |
//! | phi3 | multiplies frequencies by LongRoPE's factors, where the model divides | it is given their reciprocals |
//! | phi3 | takes short factors for the first positions and long ones for the rest | contexts within the original one, or an original one of one token |
//! | phi3 | reads no factor of attention and no window | 1, none |
//! | t5 | gives a decoder the buckets of an encoder | outputs of 8 tokens, which are alike in both |
//! | t5 | multiplies by the root of `d_model` before a tied head, where the model divides | logits are divided by `d_model` |
//! | gemma2, gemma3 | scales scores by `head_dim`, not by `query_pre_attn_scalar` | the two are equal |

mod engine;
mod families;
mod weights;

use model::{Checkpoint, CheckpointFiles, WeightFormat};
use serde_json::Value;
use speculation::TokenId;
use speculation::ports::LanguageModel;

use super::extend;
use families::{FAMILIES, Family};
use weights::RandomWeights;

/// Tokens of the vocabulary of each model.
const VOCAB: usize = 97;
/// Tokens of a text, more than any window.
const TEXT: usize = 40;
/// Configurations of each family.
const VARIANTS: u64 = 6;

fn text(seed: u64) -> Vec<TokenId> {
    let token = |at: u64| (weights::hash(&format!("text {seed} {at}")) % VOCAB as u64) as TokenId;
    (0..TEXT as u64).map(token).collect()
}

/// The logits after `tokens` of the model that `config` and `weights` describe, which is given `cut` of them at a time.
fn ours(
    config: &Value,
    weights: &RandomWeights,
    (source, tokens): (&[TokenId], &[TokenId]),
    cut: usize,
) -> Vec<f32> {
    let files = CheckpointFiles {
        config: config.to_string().into_bytes().into(),
        weights: weights.file().into(),
        tokenizer: None,
        tokenizer_config: None,
    };
    let checkpoint = Checkpoint::from_bytes(files).unwrap();
    let mut model = checkpoint.load(WeightFormat::F32).unwrap();
    let mut cache = model.new_cache();
    if !source.is_empty() {
        model.encode(&mut cache, source).unwrap();
    }
    let mut logits = Vec::new();
    for some in tokens.chunks(cut) {
        (logits, _) = extend(&mut model, &mut cache, some);
    }
    logits[logits.len() - VOCAB..].to_vec()
}

/// The largest difference from candle's logits, as a multiple of the largest logit or of 1.
fn difference(family: &Family, ours_config: &Value, variant: u64) -> f32 {
    let (config, tokens) = ((family.config)(variant), text(variant));
    let weights = RandomWeights::new(
        variant,
        family.norm_plus_one,
        config["tie_word_embeddings"] == true,
    );
    let expected = (family.candle)(&config, &weights, &tokens).unwrap();
    let cut = [TEXT, 1, 5][(variant / 2) as usize];
    let found = ours(
        ours_config,
        &weights,
        tokens.split_at(family.source_len),
        cut,
    );
    assert_eq!(found.len(), expected.len(), "{}", family.name);
    let largest = expected
        .iter()
        .fold(1.0_f32, |most, logit| most.max(logit.abs()));
    let differences = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0_f32, f32::max) / largest
}

#[test]
fn logits_are_those_of_another_implementation() {
    for family in FAMILIES {
        for variant in 0..VARIANTS {
            let config = (family.config)(variant);
            let found = difference(family, &config, variant);
            assert!(
                found <= family.tolerance,
                "{} {config}: {found}",
                family.name
            );
        }
    }
}

/// Otherwise the comparison above would show nothing.
#[test]
fn another_configuration_gives_other_logits() {
    for family in FAMILIES {
        for &(key, value) in family.faults {
            let mut config = (family.config)(0);
            config[key] = serde_json::from_str(value).unwrap();
            let found = difference(family, &config, 0);
            assert!(found > 1e-3, "{} with {key} {value}: {found}", family.name);
        }
    }
}
