//! Answers of `/generate`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use speculation::TokenId;
use speculation::certificate::PartialRow;
use speculation::logprobs::Likely;

use super::body::asked;
use crate::checks;
use crate::engine::ScoredRows;
use crate::error::ScoringError;
use crate::request::{ScoreRequest, ScoredSequence};

/// The answer for one sequence, as far as it is read.
#[derive(Debug, Deserialize)]
pub(super) struct SequenceReply {
    meta_info: MetaInfo,
}

#[derive(Debug, Deserialize)]
struct MetaInfo {
    prompt_tokens: usize,
    #[serde(default)]
    cached_tokens: usize,
    input_top_logprobs: Option<Vec<Option<Vec<TopLogprob>>>>,
    output_top_logprobs: Option<Vec<Option<Vec<TopLogprob>>>>,
    input_token_ids_logprobs: Option<Vec<Option<Vec<TopLogprob>>>>,
    output_token_ids_logprobs: Option<Vec<Option<Vec<TopLogprob>>>>,
}

/// A log probability, its token, and the token's text, which is null. NaN and infinities are null, too.
type TopLogprob = (Option<f64>, TokenId, IgnoredAny);

/// Returns the rows that `answers` hold, if they are answers to `request`.
pub(super) fn scored(
    request: &ScoreRequest<'_>,
    vocab_size: usize,
    answers: Vec<SequenceReply>,
) -> Result<Vec<ScoredRows>, ScoringError> {
    let sequences = request.sequences;
    checks::count("sequences", answers.len(), sequences.len())?;
    let lists = asked(sequences);
    let of_sequence = answers.into_iter().enumerate().map(|(at, answer)| {
        let wanted = AskedSequence {
            at,
            sequence: &sequences[at],
            vocab_size,
            top: request.top.min(vocab_size),
            asked: lists.get(at).map_or(&[], Vec::as_slice),
        };
        let cached_tokens = answer.meta_info.cached_tokens;
        Ok(ScoredRows {
            rows: wanted.rows(answer.meta_info)?,
            cached_tokens: cached_tokens.min(sequences[at].committed),
        })
    });
    of_sequence.collect()
}

/// What was asked of one sequence.
struct AskedSequence<'a> {
    at: usize,
    sequence: &'a ScoredSequence<'a>,
    vocab_size: usize,
    top: usize,
    asked: &'a [TokenId],
}

impl AskedSequence<'_> {
    fn rows(&self, meta: MetaInfo) -> Result<Vec<PartialRow>, ScoringError> {
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
            checks::row((self.at, row), self.vocab_size, self.top, likely, asked)
        })
        .collect()
    }

    /// Returns the entries of each row: those of the input behind a null, then that of the token generated.
    fn lists(
        &self,
        input: Option<Vec<Option<Vec<TopLogprob>>>>,
        output: Option<Vec<Option<Vec<TopLogprob>>>>,
    ) -> Result<Vec<Vec<Likely>>, ScoringError> {
        let missing = ScoringError::Answer("holds no log probabilities");
        let (Some(input), Some(output)) = (input, output) else {
            return Err(missing);
        };
        checks::count("rows of its input", input.len(), self.sequence.rows())?;
        checks::count("rows of its output", output.len(), 1)?;
        let mut input = input.into_iter();
        if input.next().flatten().is_some() {
            return Err(ScoringError::Answer("holds a row where null was expected"));
        }
        let rows = input.chain(output);
        rows.map(|row| {
            let row = row.ok_or(ScoringError::Answer("holds null instead of a row"))?;
            row.into_iter().map(entry).collect()
        })
        .collect()
    }
}

fn entry((logprob, token, _): TopLogprob) -> Result<Likely, ScoringError> {
    let missing = "holds null instead of a log probability, which may be NaN";
    let logprob = logprob.ok_or(ScoringError::Answer(missing))?;
    Ok(Likely { token, logprob })
}
