//! Bodies of requests to `/generate`.

use serde::Serialize;
use speculation::TokenId;

use crate::request::ScoredSequence;

/// How the one token is generated that a request must generate. Its row is divided by the temperature, except at 0.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct GreedyParams {
    max_new_tokens: u32,
    temperature: u32,
    ignore_eos: bool,
}

pub(super) const GREEDY: GreedyParams = GreedyParams {
    max_new_tokens: 1,
    temperature: 0,
    ignore_eos: true,
};

/// A field of a request: a value for its only sequence, or a list with one for each of several.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum PerSequence<T> {
    One(T),
    Several(Vec<T>),
}

impl<T> PerSequence<T> {
    fn of(values: impl IntoIterator<Item = T>) -> Self {
        let mut values: Vec<T> = values.into_iter().collect();
        match values.pop() {
            Some(only) if values.is_empty() => Self::One(only),
            last => {
                values.extend(last);
                Self::Several(values)
            }
        }
    }

    /// Returns nothing for an empty list: the field is then left out.
    fn unless_empty(values: Vec<T>) -> Option<Self> {
        (!values.is_empty()).then(|| Self::of(values))
    }
}

/// A request for the rows of sequences.
#[derive(Debug, Serialize)]
pub(super) struct ScoreBody<'a> {
    input_ids: PerSequence<&'a [TokenId]>,
    sampling_params: PerSequence<GreedyParams>,
    return_logprob: PerSequence<bool>,
    logprob_start_len: PerSequence<usize>,
    top_logprobs_num: PerSequence<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids_logprob: Option<PerSequence<Vec<TokenId>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_key: Option<PerSequence<&'a str>>,
}

impl<'a> ScoreBody<'a> {
    /// Asks for the `top` most likely tokens of each row of `sequences`, and for the tokens that these ask for.
    pub(super) fn of(sequences: &[ScoredSequence<'a>], top: usize) -> Self {
        let count = sequences.len();
        let starts = sequences.iter().map(|sequence| sequence.committed - 1);
        Self {
            input_ids: PerSequence::of(sequences.iter().map(|sequence| sequence.tokens)),
            sampling_params: PerSequence::of(vec![GREEDY; count]),
            return_logprob: PerSequence::of(vec![true; count]),
            logprob_start_len: PerSequence::of(starts),
            top_logprobs_num: PerSequence::of(vec![top; count]),
            token_ids_logprob: PerSequence::unless_empty(asked(sequences)),
            extra_key: PerSequence::unless_empty(salts(sequences)),
        }
    }
}

/// Returns the salt of each sequence; nothing if no sequence has one.
fn salts<'a>(sequences: &[ScoredSequence<'a>]) -> Vec<&'a str> {
    let salts = sequences.iter().map(|sequence| sequence.salt);
    if salts.clone().all(str::is_empty) {
        return Vec::new();
    }
    salts.collect()
}

/// Returns the ids asked of each sequence: nothing of any, or a list for each. An empty list beside others would be no
/// list to the engine, so token 0 stands in it.
pub(super) fn asked(sequences: &[ScoredSequence<'_>]) -> Vec<Vec<TokenId>> {
    let mut lists: Vec<Vec<TokenId>> = sequences.iter().map(ScoredSequence::union).collect();
    if lists.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    for list in lists.iter_mut().filter(|list| list.is_empty()) {
        list.push(0);
    }
    lists
}
