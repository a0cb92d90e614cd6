//! Answers of `/generate`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use speculation::TokenId;
use speculation::certificate::PartialRow;
use speculation::logprobs::Likely;

use super::body::asked;
use crate::checks::{self, Place};
use crate::error::EngineError;
use crate::request::{Scoring, Sequence};

/// The answer for one sequence, as far as it is read.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    meta_info: MetaInfo,
}

#[derive(Debug, Deserialize)]
struct MetaInfo {
    prompt_tokens: usize,
    #[serde(default)]
    input_top_logprobs: Option<Vec<Option<Vec<Entry>>>>,
    #[serde(default)]
    output_top_logprobs: Option<Vec<Option<Vec<Entry>>>>,
    #[serde(default)]
    input_token_ids_logprobs: Option<Vec<Option<Vec<Entry>>>>,
    #[serde(default)]
    output_token_ids_logprobs: Option<Vec<Option<Vec<Entry>>>>,
}

/// A log probability, its token, and the token's text, which is null. NaN and infinities are null, too.
type Entry = (Option<f64>, TokenId, IgnoredAny);

/// The rows that `answers` hold, if they are answers to `scoring`.
pub(super) fn rows(
    scoring: &Scoring<'_>,
    vocab_size: usize,
    answers: Vec<Answer>,
) -> Result<Vec<Vec<PartialRow>>, EngineError> {
    let sequences = scoring.sequences;
    checks::count("sequences", answers.len(), sequences.len())?;
    let lists = match sequences {
        [one] => vec![one.union()],
        several => asked(several),
    };
    let of_sequence = answers.into_iter().enumerate().map(|(at, answer)| {
        let wanted = Wanted {
            at,
            sequence: &sequences[at],
            vocab_size,
            top: scoring.top.min(vocab_size),
            asked: lists.get(at).map_or(&[], Vec::as_slice),
        };
        wanted.rows(answer.meta_info)
    });
    of_sequence.collect()
}

/// What was asked of one sequence.
struct Wanted<'a> {
    at: usize,
    sequence: &'a Sequence<'a>,
    vocab_size: usize,
    top: usize,
    asked: &'a [TokenId],
}

impl Wanted<'_> {
    fn rows(&self, meta: MetaInfo) -> Result<Vec<PartialRow>, EngineError> {
        let tokens = self.sequence.tokens.len();
        checks::count("prompt tokens", meta.prompt_tokens, tokens)?;
        let likely = if self.top == 0 {
            vec![Vec::new(); self.sequence.rows()]
        } else {
            self.lists(meta.input_top_logprobs, meta.output_top_logprobs)?
        };
        let asked = if self.asked.is_empty() {
            vec![Vec::new(); self.sequence.rows()]
        } else {
            self.lists(
                meta.input_token_ids_logprobs,
                meta.output_token_ids_logprobs,
            )?
        };
        let rows = likely.iter().zip(&asked).enumerate();
        rows.map(|(row, (likely, asked))| {
            checks::in_order(asked, self.asked)?;
            let place = Place {
                sequence: self.at,
                row,
            };
            checks::row(place, self.vocab_size, self.top, likely, asked)
        })
        .collect()
    }

    /// The entries of each row: those of the input behind a null, then that of the token generated.
    fn lists(
        &self,
        input: Option<Vec<Option<Vec<Entry>>>>,
        output: Option<Vec<Option<Vec<Entry>>>>,
    ) -> Result<Vec<Vec<Likely>>, EngineError> {
        let missing = EngineError::Answer("holds no log probabilities");
        let (Some(input), Some(output)) = (input, output) else {
            return Err(missing);
        };
        checks::count("rows of its input", input.len(), self.sequence.rows())?;
        checks::count("rows of its output", output.len(), 1)?;
        let mut input = input.into_iter();
        if input.next().flatten().is_some() {
            return Err(EngineError::Answer("holds a row where null was expected"));
        }
        let rows = input.chain(output);
        rows.map(|row| {
            let row = row.ok_or(EngineError::Answer("holds null instead of a row"))?;
            row.into_iter().map(entry).collect()
        })
        .collect()
    }
}

fn entry((logprob, token, _): Entry) -> Result<Likely, EngineError> {
    let missing = "holds null instead of a log probability, which may be NaN";
    let logprob = logprob.ok_or(EngineError::Answer(missing))?;
    Ok(Likely { token, logprob })
}
