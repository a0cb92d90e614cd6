//! Log probabilities of the prompt's tokens over an engine elsewhere.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engines::Ids;
use peer::{Cost, RoundError};
use speculation::TokenId;
use speculation::logprobs::TokenLogprobs;
use wire::failure::Failure;

use super::Remote;
use super::queue::Wanted;
use crate::target::VerifySession;

/// The log probabilities of the prompt tokens after each of those in `range`. `limit` bounds the request.
pub(crate) async fn score_prompt(
    remote: &Remote,
    session: &VerifySession,
    range: Range<usize>,
    limit: Duration,
) -> Result<(Vec<TokenLogprobs>, Cost), RoundError> {
    let (lead, vocab_size) = (session.spec.lead(), session.spec.vocab_size as usize);
    let scored = &lead[range.start + 1..=range.end];
    let wanted = session.spec.logprobs.unwrap_or(0) as usize;
    let can_ask = remote.caps.ids != Ids::None;
    let of_row = |&token: &TokenId| if can_ask { vec![token] } else { Vec::new() };
    let request = Wanted {
        tokens: lead[..range.end].to_vec(),
        committed: range.start + 1,
        top: if can_ask {
            wanted.max(1)
        } else {
            remote.row_len
        },
        asked: scored.iter().map(of_row).collect(),
        salt: Arc::clone(&session.memory.salt),
        deadline: Instant::now() + limit,
    };
    let (rows, step) = remote.queue.ask(request).await?;
    let rows = rows.into_iter().map(|row| row.within(vocab_size));
    let told = rows.zip(scored).map(|(row, &token)| {
        if row.contains(token) {
            return Ok(row.logprobs(token, wanted));
        }
        let why = "the engine left out a token of the prompt";
        Err(RoundError::Other(Failure::Unavailable.status(why)))
    });
    Ok((told.collect::<Result<_, _>>()?, Cost::of(step)))
}
