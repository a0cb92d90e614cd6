//! The pairs of models that whole requests are measured on.

pub(crate) mod calibration;

use anyhow::Context;
use clap::ValueEnum;
use drafter::{CascadeSection, DrafterConfig};
use model::source::{self, ModelSource, ServedModel};
use model::{Checkpoint, Model, ModelConfig, WeightFormat};
use serde_json::{Map, Value, json};

use crate::models::{millions, parameters};
use outrider::config::Config;

/// Words of a synthetic prompt.
pub(crate) const PROMPT_WORDS: usize = 32;

/// Seed of the synthetic target's weights.
const WEIGHTS_SEED: u64 = 1;

/// A pair to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichPair {
    /// The built-in pair, on the built-in prompts.
    Embedded,
    /// A large target of random weights and its own first layers, on random prompts.
    Synthetic,
}

/// A target and its draft, ready to serve.
pub(crate) struct Pair {
    pub(crate) target: ServedModel<Model>,
    pub(crate) draft: ServedModel<Model>,
}

impl Pair {
    /// The built-in pair.
    ///
    /// # Errors
    /// If there is none in this build.
    pub(crate) fn embedded() -> anyhow::Result<Self> {
        let load = |role| ModelSource::embedded(role).load();
        Ok(Self {
            target: load("target")?,
            draft: load("draft")?,
        })
    }
}

impl Pair {
    /// What the pair is, in words.
    pub(crate) fn describe(&self, which: WhichPair) -> String {
        let [target, draft] = [&self.target, &self.draft]
            .map(|served| (served.model.config()).expect("our own runtime computes it"));
        let sizes = [target, draft].map(|config| millions(parameters(config)));
        match which {
            WhichPair::Synthetic => format!(
                "a target of random weights, {} parameters in {} layers, and its first {} as draft, {}, with \
                 the same embedding; vocabulary {}",
                sizes[0], target.layers, draft.layers, sizes[1], target.vocab_size
            ),
            WhichPair::Embedded => format!(
                "the built-in target of {} parameters and its draft of {}; vocabulary {}",
                sizes[0], sizes[1], target.vocab_size
            ),
        }
    }
}

/// A target of random weights whose draft is its own first layers. What the layers behind them add to the
/// hidden states is scaled down, so that the draft foretells the target as well as is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Synthetic {
    pub(crate) target: ModelConfig,
    pub(crate) draft_layers: usize,
}

impl Synthetic {
    /// Target and draft with deeper layers at `scale`, computed in Q8_0.
    ///
    /// # Errors
    /// If their sizes are too large.
    pub(crate) fn models(&self, scale: f32) -> anyhow::Result<[Model; 2]> {
        let [target, draft] = self.checkpoints(scale)?;
        Ok([
            target.load(WeightFormat::Q8_0)?,
            draft.load(WeightFormat::Q8_0)?,
        ])
    }

    /// The same ready to serve.
    ///
    /// # Errors
    /// As [`Synthetic::models`].
    pub(crate) fn pair(&self, scale: f32) -> anyhow::Result<Pair> {
        let tokenizer = tokenizer(self.target.vocab_size)?;
        let serve = |checkpoint: Checkpoint, name: &str| {
            let checkpoint = checkpoint.with_tokenizer(tokenizer.clone());
            source::serve(&checkpoint, WeightFormat::Q8_0, name.to_owned(), name)
                .context("the synthetic pair")
        };
        let [target, draft] = self.checkpoints(scale)?;
        Ok(Pair {
            target: serve(target, "synthetic-target")?,
            draft: serve(draft, "synthetic-draft")?,
        })
    }

    fn checkpoints(&self, scale: f32) -> anyhow::Result<[Checkpoint; 2]> {
        // Weights are drawn layer after layer, so that a model of fewer layers has the same first ones.
        let draft = ModelConfig {
            layers: self.draft_layers,
            ..self.target.clone()
        };
        let scale = |name: &str| self.scale_of(name, scale);
        Ok([
            Checkpoint::random_scaled(self.target.clone(), WEIGHTS_SEED, scale)?,
            Checkpoint::random_scaled(draft, WEIGHTS_SEED, scale)?,
        ])
    }

    /// What a tensor is multiplied by: the outputs of the blocks behind the draft's last layer by `scale`.
    fn scale_of(&self, name: &str, scale: f32) -> f32 {
        let layer = name.strip_prefix("model.layers.");
        let layer = layer.and_then(|rest| rest.split_once('.'));
        let Some((Ok(layer), part)) = layer.map(|(layer, part)| (layer.parse::<usize>(), part))
        else {
            return 1.0;
        };
        let is_output = part.starts_with("self_attn.o_proj") || part.starts_with("mlp.down_proj");
        if is_output && layer >= self.draft_layers {
            scale
        } else {
            1.0
        }
    }
}

/// The configuration of services that serve a pair made up on the spot: with nothing that belongs to the
/// built-in one.
pub(crate) fn without_extras(config: Config) -> Config {
    Config {
        drafter: DrafterConfig {
            model: ModelSource::embedded("draft"),
            heads: Vec::new(),
            bigram: "none".to_owned(),
            cascade: CascadeSection {
                models: Vec::new(),
                k: Vec::new(),
                ..config.drafter.cascade
            },
            ..config.drafter
        },
        ..config
    }
}

/// A `tokenizer.json` of words without meaning, one for every row of the embedding.
fn tokenizer(vocab: usize) -> anyhow::Result<Vec<u8>> {
    let words: Map<String, Value> = (0..vocab).map(|id| (word(id), id.into())).collect();
    let json = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": word(0)},
    });
    Ok(serde_json::to_vec(&json)?)
}

fn word(id: usize) -> String {
    format!("w{id}")
}

/// `count` words that say nothing, different for every `seed`.
pub(crate) fn prompt(vocab: usize, count: usize, seed: usize) -> String {
    let words = ids(vocab, count, seed).map(word);
    words.collect::<Vec<_>>().join(" ")
}

/// The ids of the words of [`prompt`].
pub(crate) fn ids(vocab: usize, count: usize, seed: usize) -> impl Iterator<Item = usize> {
    // Odd multipliers of 2^64 over the golden ratio and of SplitMix64: neighbours have nothing in common.
    (0..count).map(move |at| {
        let mixed = ((seed as u64) << 20 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 33) as usize % vocab
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::random;

    fn synthetic() -> Synthetic {
        Synthetic {
            target: random(64, 3, 128).expect("a config"),
            draft_layers: 1,
        }
    }

    #[test]
    fn the_draft_is_the_targets_first_layers_and_deeper_ones_are_scaled() {
        let [target, draft] = synthetic().checkpoints(0.5).expect("weights");
        let [unscaled, _] = synthetic().checkpoints(1.0).expect("weights");
        let tensor = |of: &Checkpoint, name: &str, shape: [usize; 2]| {
            of.weights().tensor(name, &shape).expect("a tensor")
        };
        let names = [
            ("model.embed_tokens.weight", [128, 64]),
            ("model.layers.0.self_attn.q_proj.weight", [64, 64]),
            ("model.layers.0.mlp.down_proj.weight", [64, 192]),
        ];
        for (name, shape) in names {
            let of_target = tensor(&target, name, shape);
            assert!(of_target == tensor(&draft, name, shape), "{name}");
            assert!(of_target == tensor(&unscaled, name, shape), "{name}");
        }
        for layer in [1, 2] {
            for (part, shape, by) in [
                ("self_attn.o_proj", [64, 64], 0.5),
                ("mlp.down_proj", [64, 192], 0.5),
                ("mlp.up_proj", [192, 64], 1.0),
            ] {
                let name = format!("model.layers.{layer}.{part}.weight");
                let expected = tensor(&unscaled, &name, shape).into_iter().map(|w| w * by);
                let expected: Vec<f32> = expected.collect();
                assert!(tensor(&target, &name, shape) == expected, "{name}");
            }
        }
        assert!(
            draft
                .weights()
                .tensor("model.layers.1.mlp.up_proj.weight", &[192, 64])
                .is_err()
        );
    }

    #[test]
    fn every_token_of_the_synthetic_pair_is_a_word() {
        let pair = synthetic().pair(0.5).expect("a pair");
        assert_eq!(
            (
                pair.target.outline.vocab_size,
                pair.draft.outline.vocab_size
            ),
            (128, 128)
        );
        assert_eq!(
            pair.target.outline.vocab_fingerprint,
            pair.draft.outline.vocab_fingerprint
        );
        let [checkpoint, _] = synthetic().checkpoints(1.0).expect("weights");
        let json = tokenizer(128).expect("JSON");
        let tokenizer = checkpoint
            .with_tokenizer(json)
            .tokenizer()
            .expect("a tokenizer");
        let encoded = tokenizer.encode(prompt(128, 9, 4), true).expect("tokens");
        let expected: Vec<u32> = ids(128, 9, 4).map(|id| id as u32).collect();
        assert_eq!(encoded.get_ids(), expected);
        assert_ne!(
            expected,
            ids(128, 9, 5).map(|id| id as u32).collect::<Vec<_>>()
        );
    }
}
