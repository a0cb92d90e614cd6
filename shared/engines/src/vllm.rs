//! vLLM, by two routes.
//!
//! [`VllmRoute::Generate`] is `/inference/v1/generate`, which scores a list of tokens for each row; only the V2 model runner
//! does. [`VllmRoute::Completions`] is `/v1/completions`, which any version has and which gives the most likely tokens alone.
//! Both read the whole sequence in each round, and answer with a row for each of its tokens where most likely tokens
//! are asked for: use them where nothing else is at hand.
//!
//! What their answers are like, and what must not be asked of them:
//!
//! - The row after the last token is in no answer to a prompt, so each sequence ends with one token more. Which does
//!   not matter: no row is after it.
//! - `prompt_logprobs: k` gives k entries a row, or k + 1 where the token that follows is none of the k most likely.
//!   The ranks that come along are not read: equals share one.
//! - `logprobs` of the completions route is keyed by text, and different tokens have the same: it is not asked for.
//! - `skip_reading_prefix_cache: false` with `prompt_logprobs` makes the V1 runner answer with uninitialised memory,
//!   and can end the server. It is in no request of ours; the server leaves its cache alone by itself.
//! - Log probabilities of -infinity are -9999.

mod npy;
pub(crate) mod probe;
mod prompt_logprobs;
mod routes;

use std::time::Instant;

use serde::Deserialize;
use serde_json::json;
use speculation::TokenId;
use speculation::certificate::PartialRow;

use crate::checks;
use crate::engine::{EngineCaps, EngineIdentity, Ids, ModelSizes, ScoredRows, ScoringEngine};
use crate::error::ScoringError;
use crate::http::{EngineConnection, HttpCall};
use crate::request::{ScoreRequest, ScoredSequence};

/// The route that scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VllmRoute {
    /// `/inference/v1/generate`: a list of tokens for each row, with the V2 model runner.
    Generate,
    /// `/v1/completions`: the most likely tokens alone, slowly. No tokens can be asked for, so more choices stay unproved,
    /// and nothing that needs a token to be known can be done.
    Completions,
}

#[derive(Debug, Deserialize)]
struct TokenizeReply {
    tokens: Vec<TokenId>,
}

/// A vLLM server, asked by one of its routes.
#[derive(Debug)]
pub struct Vllm {
    connection: EngineConnection,
    name: String,
    model: ModelSizes,
    route: VllmRoute,
}

impl Vllm {
    /// Creates a client of the server at the other end of `connection`, which calls the model `name`.
    pub fn new(
        connection: EngineConnection,
        name: String,
        model: ModelSizes,
        route: VllmRoute,
    ) -> Self {
        Self {
            connection,
            name,
            model,
            route,
        }
    }

    /// Scores one sequence, `at` its index in the request.
    fn score_one(
        &self,
        at: usize,
        sequence: &ScoredSequence<'_>,
        top: usize,
        deadline: Instant,
    ) -> Result<Vec<PartialRow>, ScoringError> {
        let (likely, asked) = match self.route {
            VllmRoute::Generate => self.generate(sequence, top, deadline)?,
            VllmRoute::Completions => {
                let likely = self.complete(sequence, top, deadline)?;
                (likely, vec![Vec::new(); sequence.rows()])
            }
        };
        let rows = likely.into_iter().zip(asked).enumerate();
        rows.map(|(row, (found, mut asked))| {
            for follows in found.beside {
                if asked.iter().all(|entry| entry.token != follows.token) {
                    asked.push(follows);
                }
            }
            let vocab_size = self.model.vocab_size;
            checks::row((at, row), vocab_size, top, &found.likely, &asked)
        })
        .collect()
    }
}

impl ScoringEngine for Vllm {
    fn caps(&self) -> EngineCaps {
        EngineCaps {
            ids: match self.route {
                VllmRoute::Generate => Ids::PerRow,
                VllmRoute::Completions => Ids::None,
            },
            keeps_cache: false,
            max_sequences: 1,
            // Its cache is read by no request for the log probabilities of a prompt.
            parts_tenants: true,
        }
    }

    /// Scores one sequence after the other.
    fn score(
        &self,
        request: &ScoreRequest<'_>,
        deadline: Instant,
    ) -> Result<Vec<ScoredRows>, ScoringError> {
        let asks = |sequence: &ScoredSequence<'_>| sequence.asked.iter().any(|ids| !ids.is_empty());
        if self.route == VllmRoute::Completions && request.sequences.iter().any(asks) {
            let what = "log probabilities of given tokens";
            return Err(ScoringError::NotOffered(what));
        }
        let model = self.model;
        // A sequence is sent with one token more, so the context holds one less.
        request.check(model.vocab_size, model.context_len.saturating_sub(1))?;
        let top = request.top.min(model.vocab_size);
        let sequences = request.sequences.iter().enumerate();
        sequences
            .map(|(at, sequence)| {
                let rows = self.score_one(at, sequence, top, deadline)?;
                // As said above, it computes all of them.
                let cached_tokens = 0;
                Ok(ScoredRows {
                    rows,
                    cached_tokens,
                })
            })
            .collect()
    }

    fn tokens_of(&self, text: &str, deadline: Instant) -> Result<Vec<TokenId>, ScoringError> {
        let request = json!({"model": self.name, "prompt": text});
        let call = HttpCall::to_ask("/tokenize", deadline);
        let reply: TokenizeReply = self.connection.post(call, &request)?;
        Ok(reply.tokens)
    }

    fn identity(&self, deadline: Instant) -> Result<EngineIdentity, ScoringError> {
        probe::identity(&self.connection, deadline)
    }

    fn is_well(&self, deadline: Instant) -> Result<(), ScoringError> {
        self.connection
            .is_answered(HttpCall::to_ask("/health", deadline))
    }
}
