//! SGLang, by its route `/generate`.
//!
//! One request scores several sequences and generates one token of each, of which only the row is read: it is the one
//! after the last draft token. Keys and values of the committed tokens are kept, so a request computes only the rows
//! asked for, and so does its repetition.
//!
//! What its answers are like, and what must not be asked of it:
//!
//! - `logprob_start_len` is one less than the committed tokens; there are then as many entries as draft tokens and one
//!   more, of which the first is null. With 0 nothing is taken from the cache, with -1 there are no rows.
//! - The last row stands apart, in `output_*`, and is divided by the request's temperature, which the others are not:
//!   the temperature is always 0, which leaves it alone.
//! - `extra_key` separates entries of the prefix cache. Servers that do not know it ignore it.
//! - `token_ids_logprob` is one list for all rows: it is the union of what the rows ask for.

mod answer;
mod body;
pub(crate) mod probe;

use std::time::Instant;

use body::{GREEDY, ScoreBody};
use serde::Deserialize;
use serde_json::json;
use speculation::TokenId;

use crate::engine::{EngineCaps, EngineIdentity, Ids, ModelSizes, ScoredRows, ScoringEngine};
use crate::error::ScoringError;
use crate::http::{EngineConnection, HttpCall};
use crate::request::ScoreRequest;

const ROUTE: &str = "/generate";
/// More bytes than an entry takes, about 29: a log probability of up to 24 digits, a token and a null.
const ENTRY_BYTES: u64 = 64;
/// More bytes than an answer takes for a sequence beside its entries.
const SEQUENCE_BYTES: u64 = 64 << 10;

/// An SGLang server.
#[derive(Debug)]
pub struct Sglang {
    connection: EngineConnection,
    model: ModelSizes,
    parts_tenants: bool,
}

impl Sglang {
    /// Creates a client of the server at the other end of `connection`, which serves `model`; `parts_tenants` tells whether
    /// the server knows `extra_key`.
    pub fn new(connection: EngineConnection, model: ModelSizes, parts_tenants: bool) -> Self {
        Self {
            connection,
            model,
            parts_tenants,
        }
    }
}

impl ScoringEngine for Sglang {
    fn caps(&self) -> EngineCaps {
        EngineCaps {
            ids: Ids::Shared,
            keeps_cache: true,
            max_sequences: usize::MAX,
            parts_tenants: self.parts_tenants,
        }
    }

    fn score(
        &self,
        request: &ScoreRequest<'_>,
        deadline: Instant,
    ) -> Result<Vec<ScoredRows>, ScoringError> {
        let ModelSizes {
            vocab_size,
            context_len,
        } = self.model;
        request.check(vocab_size, context_len)?;
        let entries = request.entries(vocab_size) as u64;
        let sequences = request.sequences.len() as u64;
        let call = HttpCall {
            path: ROUTE,
            longest: entries * ENTRY_BYTES + sequences * SEQUENCE_BYTES,
            deadline,
            not_offered: &[],
        };
        let body = ScoreBody::of(request.sequences, request.top.min(vocab_size));
        let replies = if request.sequences.len() == 1 {
            vec![self.connection.post(call, &body)?]
        } else {
            self.connection.post(call, &body)?
        };
        answer::scored(request, vocab_size, replies)
    }

    fn tokens_of(&self, text: &str, deadline: Instant) -> Result<Vec<TokenId>, ScoringError> {
        let request = json!({
            "text": text,
            "sampling_params": GREEDY,
            "return_logprob": true,
            "logprob_start_len": 0,
        });
        let call = HttpCall {
            path: ROUTE,
            longest: SEQUENCE_BYTES + text.len() as u64 * BYTES,
            deadline,
            not_offered: &[],
        };
        let reply: TextReply = self.connection.post(call, &request)?;
        let read = reply.meta_info.input_token_logprobs.into_iter();
        Ok(read.map(|(_, token, _)| token).collect())
    }

    fn identity(&self, deadline: Instant) -> Result<EngineIdentity, ScoringError> {
        probe::identity(&self.connection, deadline)
    }

    fn is_well(&self, deadline: Instant) -> Result<(), ScoringError> {
        self.connection
            .is_answered(HttpCall::to_ask("/health", deadline))
    }
}

/// More bytes than an answer takes for a byte of text.
const BYTES: u64 = 256;

#[derive(Debug, Deserialize)]
struct TextReply {
    meta_info: TextMeta,
}

#[derive(Debug, Deserialize)]
struct TextMeta {
    /// Log probability, token and nothing, of each token of the text.
    input_token_logprobs: Vec<(Option<f64>, TokenId, Option<String>)>,
}
