//! `/inference/v1/generate`: a list of tokens for each row, with the V2 model runner.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use speculation::TokenId;
use speculation::certificate::PartialRow;
use speculation::logprobs::Likely;

use super::prompt_logprobs::{self, PromptLogprobs, Said};
use super::{npy, said, score_each};
use crate::checks::{self, Place};
use crate::engine::{Caps, Identity, Ids, ScoringEngine, ServedModel};
use crate::error::EngineError;
use crate::http::{Call, Connection};
use crate::request::{Scoring, Sequence};

const ROUTE: &str = "/inference/v1/generate";
/// Fills the lists that are shorter than the longest; what is said of it is not read.
const PADDING: i64 = -1;
/// How the V1 model runner refuses.
const NOT_OFFERED: &[(&str, &str)] = &[
    (
        "V2 model runner",
        "log probabilities of given tokens, which take its V2 model runner",
    ),
    prompt_logprobs::TOO_MANY,
];

/// A vLLM server, by the route that scores given tokens.
#[derive(Debug)]
pub struct Vllm {
    connection: Connection,
    name: String,
    model: ServedModel,
}

#[derive(Debug, Serialize)]
struct Request<'a> {
    token_ids: Vec<TokenId>,
    sampling_params: SamplingParams,
    stream: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    cache_salt: &'a str,
}

#[derive(Debug, Serialize)]
struct SamplingParams {
    max_tokens: u32,
    temperature: u32,
    ignore_eos: bool,
    detokenize: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_logprobs: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompt_logprob_token_ids: Vec<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_logprob_start: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    prompt_logprobs: Option<PromptLogprobs>,
    #[serde(default)]
    prompt_token_id_logprobs: Option<String>,
}

impl Vllm {
    /// The server at the other end of `connection`, which calls the model `name`.
    pub fn new(connection: Connection, name: String, model: ServedModel) -> Self {
        Self {
            connection,
            name,
            model,
        }
    }

    /// Where it was asked.
    pub(super) fn into_connection(self) -> Connection {
        self.connection
    }

    fn score_one(
        &self,
        at: usize,
        sequence: &Sequence<'_>,
        top: usize,
        deadline: Instant,
    ) -> Result<Vec<PartialRow>, EngineError> {
        let width = sequence.asked.iter().map(Vec::len).max().unwrap_or(0);
        let request = Request {
            token_ids: prompt_logprobs::prompt(sequence),
            sampling_params: sampling_params(sequence, top, width),
            stream: false,
            cache_salt: sequence.salt,
        };
        let matrix = npy::longest(sequence.rows(), width);
        let call = Call {
            path: ROUTE,
            longest: matrix + prompt_logprobs::longest(sequence, top),
            deadline,
            not_offered: NOT_OFFERED,
        };
        let answer: Answer = self.connection.post(call, &request)?;
        let likely = if top == 0 {
            vec![Said::default(); sequence.rows()]
        } else {
            prompt_logprobs::rows(sequence, top, answer.prompt_logprobs)?
        };
        let asked = if width == 0 {
            vec![Vec::new(); sequence.rows()]
        } else {
            asked(sequence, width, answer.prompt_token_id_logprobs)?
        };
        let rows = likely.into_iter().zip(asked).enumerate();
        rows.map(|(row, (said, mut asked))| {
            for follows in said.beside {
                if asked.iter().all(|entry| entry.token != follows.token) {
                    asked.push(follows);
                }
            }
            let place = Place { sequence: at, row };
            checks::row(place, self.model.vocab_size, top, &said.likely, &asked)
        })
        .collect()
    }
}

fn sampling_params(sequence: &Sequence<'_>, top: usize, width: usize) -> SamplingParams {
    let padded = |ids: &Vec<TokenId>| -> Vec<i64> {
        let ids = ids.iter().map(|&id| i64::from(id));
        ids.chain(std::iter::repeat(PADDING)).take(width).collect()
    };
    SamplingParams {
        max_tokens: 1,
        temperature: 0,
        ignore_eos: true,
        detokenize: false,
        prompt_logprobs: (top > 0).then_some(top),
        prompt_logprob_token_ids: if width > 0 {
            sequence.asked.iter().map(padded).collect()
        } else {
            Vec::new()
        },
        prompt_logprob_start: (width > 0).then_some(sequence.committed - 1),
    }
}

/// The log probabilities of the tokens asked for, row by row.
fn asked(
    sequence: &Sequence<'_>,
    width: usize,
    said: Option<String>,
) -> Result<Vec<Vec<Likely>>, EngineError> {
    let missing = "holds no log probabilities of the tokens asked for";
    let said = said.ok_or(EngineError::Answer(missing))?;
    let matrix = npy::decode(&said, sequence.rows(), width)?;
    let rows = matrix.chunks_exact(width).zip(sequence.asked);
    let row = |(values, ids): (&[f32], &Vec<TokenId>)| -> Vec<Likely> {
        let entries = ids.iter().zip(values);
        let entry = |(&token, &value): (&TokenId, &f32)| Likely {
            token,
            logprob: value.into(),
        };
        entries.map(entry).collect()
    };
    Ok(rows.map(row).collect())
}

impl ScoringEngine for Vllm {
    fn caps(&self) -> Caps {
        Caps {
            ids: Ids::PerRow,
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
