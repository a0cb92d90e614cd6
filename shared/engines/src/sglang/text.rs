//! SGLang's own tokens of a text: it has no route for them alone, but says which ones it read.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use speculation::TokenId;

use super::ROUTE;
use super::body::{GREEDY, SamplingParams};
use crate::error::EngineError;
use crate::http::{Call, Connection};

/// More bytes than an answer takes for a byte of text.
const BYTES: u64 = 256;

#[derive(Debug, Serialize)]
struct Request<'a> {
    text: &'a str,
    sampling_params: SamplingParams,
    return_logprob: bool,
    logprob_start_len: usize,
}

#[derive(Debug, Deserialize)]
struct Answer {
    meta_info: Meta,
}

#[derive(Debug, Deserialize)]
struct Meta {
    /// Log probability, token and nothing, of each token of the text.
    input_token_logprobs: Vec<(Option<f64>, TokenId, Option<String>)>,
}

pub(super) fn tokens_of(
    connection: &Connection,
    text: &str,
    deadline: Instant,
) -> Result<Vec<TokenId>, EngineError> {
    let request = Request {
        text,
        sampling_params: GREEDY,
        return_logprob: true,
        logprob_start_len: 0,
    };
    let call = Call {
        path: ROUTE,
        longest: super::SEQUENCE_BYTES + text.len() as u64 * BYTES,
        deadline,
        not_offered: &[],
    };
    let answer: Answer = connection.post(call, &request)?;
    let read = answer.meta_info.input_token_logprobs.into_iter();
    Ok(read.map(|(_, token, _)| token).collect())
}
