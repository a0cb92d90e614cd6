//! `/v1/completions`: the most likely tokens alone, slowly.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use speculation::TokenId;
use speculation::certificate::PartialRow;

use super::prompt_logprobs::{self, PromptLogprobs};
use super::{said, score_each};
use crate::checks::{self, Place};
use crate::engine::{Caps, Identity, Ids, ScoringEngine, ServedModel};
use crate::error::EngineError;
use crate::http::{Call, Connection};
use crate::request::{Scoring, Sequence};

const ROUTE: &str = "/v1/completions";

/// A vLLM server, by the route that any version has.
///
/// No tokens can be asked for, so more choices stay unproved, and nothing that needs a token to be known can be done.
#[derive(Debug)]
pub struct VllmCompletions {
    connection: Connection,
    name: String,
    model: ServedModel,
}

#[derive(Debug, Serialize)]
struct Request<'a> {
    model: &'a str,
    prompt: Vec<TokenId>,
    max_tokens: u32,
    temperature: u32,
    prompt_logprobs: usize,
    stream: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    cache_salt: &'a str,
}

#[derive(Debug, Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    prompt_logprobs: Option<PromptLogprobs>,
}

impl VllmCompletions {
    /// The server at the other end of `connection`, which calls the model `name`.
    pub fn new(connection: Connection, name: String, model: ServedModel) -> Self {
        Self {
            connection,
            name,
            model,
        }
    }

    fn score_one(
        &self,
        at: usize,
        sequence: &Sequence<'_>,
        top: usize,
        deadline: Instant,
    ) -> Result<Vec<PartialRow>, EngineError> {
        let request = Request {
            model: &self.name,
            prompt: prompt_logprobs::prompt(sequence),
            max_tokens: 1,
            temperature: 0,
            prompt_logprobs: top,
            stream: false,
            cache_salt: sequence.salt,
        };
        let call = Call {
            path: ROUTE,
            longest: prompt_logprobs::longest(sequence, top),
            deadline,
            not_offered: &[prompt_logprobs::TOO_MANY],
        };
        let mut answer: Answer = self.connection.post(call, &request)?;
        checks::count("choices", answer.choices.len(), 1)?;
        let said = answer.choices.pop().and_then(|one| one.prompt_logprobs);
        let rows = prompt_logprobs::rows(sequence, top, said)?.into_iter();
        rows.enumerate()
            .map(|(row, said)| {
                let place = Place { sequence: at, row };
                checks::row(
                    place,
                    self.model.vocab_size,
                    top,
                    &said.likely,
                    &said.beside,
                )
            })
            .collect()
    }
}

impl ScoringEngine for VllmCompletions {
    fn caps(&self) -> Caps {
        Caps {
            ids: Ids::None,
            keeps_cache: false,
            max_sequences: 1,
            // Its cache is read by no request for the log probabilities of a prompt.
            parts_tenants: true,
        }
    }

    fn score(
        &self,
        scoring: &Scoring<'_>,
        deadline: Instant,
    ) -> Result<Vec<Vec<PartialRow>>, EngineError> {
        let asks = |sequence: &Sequence<'_>| sequence.asked.iter().any(|ids| !ids.is_empty());
        if scoring.sequences.iter().any(asks) {
            return Err(EngineError::NotOffered("log probabilities of given tokens"));
        }
        score_each(scoring, self.model, |at, sequence, top| {
            self.score_one(at, sequence, top, deadline)
        })
    }

    fn tokens_of(&self, text: &str, deadline: Instant) -> Result<Vec<TokenId>, EngineError> {
        said::tokens_of(&self.connection, &self.name, text, deadline)
    }

    fn identity(&self, deadline: Instant) -> Result<Identity, EngineError> {
        said::identity(&self.connection, deadline)
    }

    fn is_well(&self, deadline: Instant) -> Result<(), EngineError> {
        said::is_well(&self.connection, deadline)
    }
}
