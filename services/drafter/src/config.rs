//! Configuration of a drafter.

mod check;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};

use model::engine::EngineConfig;
use model::source::ModelSource;
use net::listen::{Listen, ServerConfig};
use ops::config::Switch;
use peer::Bounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

pub(crate) use check::wrong;

/// Its section of the configuration, and what it is called in metrics and traces.
pub(crate) const ROLE: &str = "drafter";

/// `model.path` of a drafter without a model.
pub(crate) const NO_MODEL: &str = "none";

/// The name of Max-Gram among models, and of a drafter that has nothing else.
pub(crate) const MAX_GRAM: &str = "max-gram";

/// `bigram` where there is no table.
pub(crate) const NO_TABLE: &str = "none";

/// `bigram` where it is whatever goes with the model.
pub(crate) const AUTOMATIC: &str = "auto";

/// Most tokens of a block: where a call within a cascade begins takes 16 bits of a random number's key.
pub(crate) const MAX_DRAFT_TOKENS: u32 = u16::MAX as u32;

/// Section `drafter` of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct DrafterConfig {
    /// Address to listen on.
    #[default(SocketAddr::from(([127, 0, 0, 1], 7101)).into())]
    pub listen: Listen,
    /// The draft model. With path `none` there is none, and Max-Gram alone drafts, in the vocabulary of the bigram table;
    /// in one process with the target model no drafter is needed then, unless a table is named.
    #[default(ModelSource::embedded("draft"))]
    pub model: ModelSource,
    /// Files of acceptance heads for learned stopping, one for each label; beside those found with the
    /// model, and instead of one for the same label.
    pub heads: Vec<String>,
    /// Bigram table of Max-Gram: a file, `embedded` for the built-in pair's, `none`, or `auto`:
    /// `bigram.safetensors` in the model's folder, else the built-in one if it is of the same vocabulary. Without a
    /// table Max-Gram proposes only what it can copy.
    #[default(AUTOMATIC.to_owned())]
    pub bigram: String,
    /// The cascade of draft models. There is one if there are two drafts, Max-Gram counted.
    pub cascade: CascadeSection,
    /// Most draft tokens in one round, 1 to 65,535; all nodes of a tree count.
    #[schemars(range(max = MAX_DRAFT_TOKENS))]
    #[default(const { NonZeroU32::new(64).unwrap() })]
    pub max_draft_tokens: NonZeroU32,
    /// Most sessions, with an open stream or waiting for their next one. One that Max-Gram drafts in keeps
    /// an index of its prompt and output as long as it lives, some 100 bytes a token, which
    /// engine.max_cached_sequences does not bound.
    #[default(const { NonZeroUsize::new(1_024).unwrap() })]
    pub max_sessions: NonZeroUsize,
    /// Bounds of each model's engine.
    pub engine: EngineConfig,
    /// Limits of the gRPC server.
    pub server: ServerConfig,
}

/// Section `drafter.cascade`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct CascadeSection {
    /// Draft models after `drafter.model`, each smaller than the one before it, all of one vocabulary.
    pub models: Vec<ModelSource>,
    /// Whether Max-Gram is the last draft; `auto` where there is a bigram table, without which `true` is refused.
    pub max_gram: Switch,
    /// Matrix K of increments: row r holds the tokens that reviewer r wants of each draft, reviewer 0
    /// being the target and reviewer r the r-th draft. Upper triangular, one row and one column for each
    /// draft, Max-Gram included; empty takes the default of its size.
    pub k: Vec<Vec<u32>>,
    /// How much less likely than its proposer a reviewer within the cascade may find a token that it
    /// keeps; at least 1. It changes speed, never the output's distribution.
    #[schemars(range(min = 1))]
    #[default(1.0)]
    pub lenience: f64,
    /// Tokens that Max-Gram proposes at a time.
    #[default(4)]
    pub max_gram_tokens: u32,
}

impl DrafterConfig {
    /// Returns the bounds that it sets.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            max_draft_tokens: self.max_draft_tokens,
            max_sessions: self.max_sessions,
            engine: self.engine,
            server: self.server.clone(),
        }
    }
}

impl CascadeSection {
    /// Returns the matrix K for `drafts` drafts where none is given, the last of them Max-Gram if `has_max_gram`. The
    /// target takes two tokens of each draft model and four of Max-Gram behind them; a draft model reviews what one
    /// call of each smaller one gives, of Max-Gram a whole proposal.
    fn default_k(drafts: usize, has_max_gram: bool) -> Vec<Vec<u32>> {
        let entry = |row: usize, column: usize| match (row, column) {
            _ if column < row => 0,
            (0, _) if has_max_gram && column + 1 == drafts => 4,
            (0, _) => 2,
            _ => 1,
        };
        let row = |row| (0..drafts).map(|column| entry(row, column)).collect();
        (0..drafts).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_matrix_is_upper_triangular() {
        assert_eq!(CascadeSection::default_k(2, true), [[2, 4], [0, 1]]);
        let three = [[2, 2, 4], [0, 1, 1], [0, 0, 1]];
        assert_eq!(CascadeSection::default_k(3, true), three);
        // Max-Gram costs nothing; a model in its place does.
        assert_eq!(CascadeSection::default_k(2, false), [[2, 2], [0, 1]]);
    }
}
