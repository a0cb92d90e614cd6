//! vLLM, by two routes.
//!
//! [`Vllm`] takes `/inference/v1/generate`, which scores a list of tokens for each row; only the V2 model runner does.
//! [`VllmCompletions`] takes `/v1/completions`, which any version has and which gives the most likely tokens alone.
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

mod completions;
mod generate;
mod npy;
mod prompt_logprobs;
pub(crate) mod said;

use speculation::certificate::PartialRow;

use crate::engine::ServedModel;
use crate::error::EngineError;
use crate::request::{Scoring, Sequence};

pub use completions::VllmCompletions;
pub use generate::Vllm;

/// Scores one sequence after the other by `score_one`, which is told the index of each, it, and how many most likely
/// tokens are wanted of its rows. A sequence is sent with one token more, so the context holds one less.
fn score_each(
    scoring: &Scoring<'_>,
    model: ServedModel,
    score_one: impl Fn(usize, &Sequence<'_>, usize) -> Result<Vec<PartialRow>, EngineError>,
) -> Result<Vec<Vec<PartialRow>>, EngineError> {
    scoring.check(model.vocab_size, model.context_len.saturating_sub(1))?;
    let top = scoring.top.min(model.vocab_size);
    let sequences = scoring.sequences.iter().enumerate();
    sequences
        .map(|(at, sequence)| score_one(at, sequence, top))
        .collect()
}
