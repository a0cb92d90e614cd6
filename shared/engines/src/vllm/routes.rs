//! The two routes that score a sequence: their requests and replies.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use speculation::TokenId;
use speculation::logprobs::Likely;

use super::prompt_logprobs::{self, PromptLogprobs, PromptRow};
use super::{Vllm, npy};
use crate::checks;
use crate::error::ScoringError;
use crate::http::HttpCall;
use crate::request::ScoredSequence;

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

#[derive(Debug, Serialize)]
struct GenerateRequest<'a> {
    token_ids: Vec<TokenId>,
    sampling_params: GenerateParams,
    stream: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    cache_salt: &'a str,
}

#[derive(Debug, Serialize)]
struct GenerateParams {
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
struct GenerateReply {
    prompt_logprobs: Option<PromptLogprobs>,
    prompt_token_id_logprobs: Option<String>,
}

#[derive(Debug, Serialize)]
struct CompletionRequest<'a> {
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
struct CompletionReply {
    choices: Vec<CompletionChoice>,
}

#[derive(Debug, Deserialize)]
struct CompletionChoice {
    prompt_logprobs: Option<PromptLogprobs>,
}

impl Vllm {
    /// Returns the most likely tokens of each row and those that were asked for, by `/inference/v1/generate`.
    pub(super) fn generate(
        &self,
        sequence: &ScoredSequence<'_>,
        top: usize,
        deadline: Instant,
    ) -> Result<(Vec<PromptRow>, Vec<Vec<Likely>>), ScoringError> {
        let width = sequence.asked.iter().map(Vec::len).max().unwrap_or(0);
        let request = GenerateRequest {
            token_ids: prompt_logprobs::prompt(sequence),
            sampling_params: generate_params(sequence, top, width),
            stream: false,
            cache_salt: sequence.salt,
        };
        let matrix = npy::longest(sequence.rows(), width);
        let call = HttpCall {
            path: "/inference/v1/generate",
            longest: matrix + prompt_logprobs::longest(sequence, top),
            deadline,
            not_offered: NOT_OFFERED,
        };
        let reply: GenerateReply = self.connection.post(call, &request)?;
        let likely = if top == 0 {
            vec![PromptRow::default(); sequence.rows()]
        } else {
            prompt_logprobs::rows(sequence, top, reply.prompt_logprobs)?
        };
        let asked = if width == 0 {
            vec![Vec::new(); sequence.rows()]
        } else {
            asked(sequence, width, reply.prompt_token_id_logprobs)?
        };
        Ok((likely, asked))
    }

    /// Returns the most likely tokens of each row, by `/v1/completions`.
    pub(super) fn complete(
        &self,
        sequence: &ScoredSequence<'_>,
        top: usize,
        deadline: Instant,
    ) -> Result<Vec<PromptRow>, ScoringError> {
        let request = CompletionRequest {
            model: &self.name,
            prompt: prompt_logprobs::prompt(sequence),
            max_tokens: 1,
            temperature: 0,
            prompt_logprobs: top,
            stream: false,
            cache_salt: sequence.salt,
        };
        let call = HttpCall {
            path: "/v1/completions",
            longest: prompt_logprobs::longest(sequence, top),
            deadline,
            not_offered: &[prompt_logprobs::TOO_MANY],
        };
        let mut reply: CompletionReply = self.connection.post(call, &request)?;
        checks::count("choices", reply.choices.len(), 1)?;
        let found = reply.choices.pop().and_then(|one| one.prompt_logprobs);
        prompt_logprobs::rows(sequence, top, found)
    }
}

fn generate_params(sequence: &ScoredSequence<'_>, top: usize, width: usize) -> GenerateParams {
    let padded = |ids: &Vec<TokenId>| -> Vec<i64> {
        let ids = ids.iter().map(|&id| i64::from(id));
        ids.chain(std::iter::repeat(PADDING)).take(width).collect()
    };
    GenerateParams {
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

/// Returns the log probabilities of the tokens asked for, row by row, from the matrix in base64.
fn asked(
    sequence: &ScoredSequence<'_>,
    width: usize,
    matrix: Option<String>,
) -> Result<Vec<Vec<Likely>>, ScoringError> {
    let missing = "holds no log probabilities of the tokens asked for";
    let matrix = matrix.ok_or(ScoringError::Answer(missing))?;
    let matrix = npy::decode(&matrix, sequence.rows(), width)?;
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
