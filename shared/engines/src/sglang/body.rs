//! Bodies of requests to `/generate`.

use serde::Serialize;
use speculation::TokenId;

use crate::request::Sequence;

/// How the one token is generated that a request must generate. Its row is divided by the temperature, except at 0.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SamplingParams {
    max_new_tokens: u32,
    temperature: u32,
    ignore_eos: bool,
}

pub(crate) const GREEDY: SamplingParams = SamplingParams {
    max_new_tokens: 1,
    temperature: 0,
    ignore_eos: true,
};

/// A request for one sequence.
#[derive(Debug, Serialize)]
pub(super) struct One<'a> {
    input_ids: &'a [TokenId],
    sampling_params: SamplingParams,
    return_logprob: bool,
    logprob_start_len: usize,
    top_logprobs_num: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    token_ids_logprob: Vec<TokenId>,
    #[serde(skip_serializing_if = "str::is_empty")]
    extra_key: &'a str,
}

/// A request for several sequences: a list of each field.
#[derive(Debug, Serialize)]
pub(super) struct Several<'a> {
    input_ids: Vec<&'a [TokenId]>,
    sampling_params: Vec<SamplingParams>,
    return_logprob: Vec<bool>,
    logprob_start_len: Vec<usize>,
    top_logprobs_num: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    token_ids_logprob: Vec<Vec<TokenId>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extra_key: Vec<&'a str>,
}

impl<'a> One<'a> {
    pub(super) fn of(sequence: &Sequence<'a>, top: usize) -> Self {
        Self {
            input_ids: sequence.tokens,
            sampling_params: GREEDY,
            return_logprob: true,
            logprob_start_len: sequence.committed - 1,
            top_logprobs_num: top,
            token_ids_logprob: sequence.union(),
            extra_key: sequence.salt,
        }
    }
}

impl<'a> Several<'a> {
    pub(super) fn of(sequences: &[Sequence<'a>], top: usize) -> Self {
        let count = sequences.len();
        Self {
            input_ids: sequences.iter().map(|sequence| sequence.tokens).collect(),
            sampling_params: vec![GREEDY; count],
            return_logprob: vec![true; count],
            logprob_start_len: (sequences.iter())
                .map(|sequence| sequence.committed - 1)
                .collect(),
            top_logprobs_num: vec![top; count],
            token_ids_logprob: asked(sequences),
            extra_key: salts(sequences),
        }
    }
}

/// The salt of each of several sequences; none if no sequence has one.
fn salts<'a>(sequences: &[Sequence<'a>]) -> Vec<&'a str> {
    let salts = sequences.iter().map(|sequence| sequence.salt);
    if salts.clone().all(str::is_empty) {
        return Vec::new();
    }
    salts.collect()
}

/// Returns the ids asked of each of several sequences: nothing of any, or a list for each. An empty list beside others
/// would be no list to the engine, so token 0 stands in it.
pub(super) fn asked(sequences: &[Sequence<'_>]) -> Vec<Vec<TokenId>> {
    let mut lists: Vec<Vec<TokenId>> = sequences.iter().map(Sequence::union).collect();
    if lists.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    for list in lists.iter_mut().filter(|list| list.is_empty()) {
        list.push(0);
    }
    lists
}
