//! A chain of draft tokens, decided by as many requests as it takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engines::Ids;
use peer::progress::Reporter;
use peer::{Cost, CountedHistory, RoundError};
use speculation::TokenId;
use speculation::certificate::chain::{Rules, Test};
use speculation::certificate::{Decided, OpenChain, PartialRow, RowQuery, RowRefusal};
use speculation::pipeline::DistributionError;
use wire::failure::Failure;
use wire::open::SessionSpec;

use super::queue::Wanted;
use super::seen::SeenRow;
use super::{Remote, RemoteMemory, standing};

/// Tokens that an engine reads in one request, at most: a longer sequence is read part by part, so that the round tells
/// how far it is.
const PART: usize = 2_048;

/// A chain that is to be decided.
pub(super) struct Open {
    pub(super) chain: OpenChain,
    /// That after the draft tokens that stand.
    pub(super) history: CountedHistory,
    /// Prompt, output and draft tokens.
    pub(super) tokens: Vec<TokenId>,
    /// How many of them come before the draft tokens.
    pub(super) committed: usize,
    /// Length of the tokenizer's rows.
    pub(super) vocab_size: usize,
    /// What to ask for first.
    pub(super) asking: RowQuery,
    /// The engine's generation at the beginning of the round.
    pub(super) generation: u32,
    /// The row that its latest token was decided by.
    pub(super) last: Option<SeenRow>,
    /// The session's salt.
    pub(super) salt: Arc<str>,
}

/// The outcome of a chain.
pub(super) struct Settled {
    pub(super) decided: Decided,
    pub(super) history: CountedHistory,
    pub(super) cost: Cost,
    /// The row that the last token was decided by.
    pub(super) last: Option<SeenRow>,
}

impl Remote {
    /// Decides a chain. `limit` bounds each request.
    ///
    /// # Errors
    /// If the engine gives no rows, or what is asked for cannot be decided by parts of them.
    pub(super) async fn settle(
        &self,
        mut open: Open,
        limit: Duration,
    ) -> Result<Settled, RoundError> {
        let mut cost = Cost::default();
        loop {
            let began = Instant::now();
            let (mut asking, ids) = (self.possible(open.asking), self.caps.ids);
            let (mut at_work, mut asked) = in_background(move || {
                let asked = open.chain.asked(asking, &open.history);
                (open, asked)
            })
            .await?;
            if ids == Ids::None && asked.iter().any(|ids| !ids.is_empty()) {
                // What must be known cannot be asked for: all of the row is.
                asking = RowQuery::whole(self.row_len);
                asked.iter_mut().for_each(Vec::clear);
            }
            let is_whole = asking.is_whole(at_work.vocab_size);
            let from = at_work.committed + at_work.chain.decided();
            let again = at_work.last.take().filter(|last| last.is_last_of(from));
            if again.is_some() {
                asked.insert(0, Vec::new());
            }
            let wanted = Wanted {
                tokens: at_work.scored().to_vec(),
                committed: from - usize::from(again.is_some()),
                top: if is_whole { self.row_len } else { asking.top },
                asked,
                salt: Arc::clone(&at_work.salt),
                deadline: Instant::now() + limit,
            };
            cost.accept += began.elapsed();
            let (mut rows, step) = self.queue.ask(wanted).await?;
            let began = Instant::now();
            if let Some(seen) = again
                && seen.differs(&rows.remove(0))
            {
                self.standing.doubt(at_work.generation);
            }
            if self.standing.generation() != at_work.generation {
                return Err(RoundError::Other(standing::changed()));
            }
            let (left, decided) = in_background(move || {
                let decided = at_work.decide(from, rows);
                (at_work, decided)
            })
            .await?;
            let this = Cost {
                step,
                accept: began.elapsed(),
            };
            cost.add(&this);
            open = left;
            if let Some((decided, last)) = decided? {
                let history = open.history;
                return Ok(Settled {
                    decided,
                    history,
                    cost,
                    last,
                });
            }
            if is_whole {
                let why = "a whole row of the engine's decides nothing";
                return Err(RoundError::Other(Failure::Internal.status(why)));
            }
            open.asking = asking.grown(open.vocab_size);
        }
    }

    /// Returns the part of `asking` that the engine can be asked for.
    fn possible(&self, asking: RowQuery) -> RowQuery {
        match self.caps.ids {
            Ids::None => RowQuery { noise: 0, ..asking },
            Ids::Shared | Ids::PerRow => asking,
        }
    }

    /// Has the engine read `tokens`, of which it has read some, as far as that takes long: the next request then reads
    /// at most [`PART`] of them.
    ///
    /// # Errors
    /// If it does not.
    pub(super) async fn read(
        &self,
        memory: &mut RemoteMemory,
        tokens: &[TokenId],
        progress: &Reporter,
        limit: Duration,
    ) -> Result<(), RoundError> {
        let mut read = memory.read.min(tokens.len());
        while self.caps.keeps_cache && tokens.len() - read > PART {
            let (done, total) = (read + PART, tokens.len());
            let wanted = Wanted {
                tokens: tokens[..done].to_vec(),
                committed: done,
                top: 1,
                asked: vec![Vec::new()],
                salt: Arc::clone(&memory.salt),
                deadline: Instant::now() + limit,
            };
            self.queue.ask(wanted).await?;
            progress.part(done, total);
            read = done;
        }
        memory.read = tokens.len();
        Ok(())
    }
}

/// Returns what decides a chain of a session of `spec`, its draft tokens being tested as `test` says.
pub(super) fn rules(spec: &SessionSpec, test: Test) -> Rules {
    Rules {
        params: Arc::clone(&spec.sampling),
        noise: spec.noise,
        vocab_size: spec.vocab_size as usize,
        test,
        logprobs: spec.logprobs.map(|top| top as usize),
    }
}

impl Open {
    /// The tokens whose rows are wanted, and those before them.
    fn scored(&self) -> &[TokenId] {
        &self.tokens[..self.committed + self.chain.scored().len()]
    }

    /// Decides as many tokens as `rows` prove; the first row follows `from` tokens. Once the chain is decided, returns the
    /// outcome and the row that decided its last token.
    fn decide(
        &mut self,
        from: usize,
        rows: Vec<PartialRow>,
    ) -> Result<Option<(Decided, Option<SeenRow>)>, RoundError> {
        let vocab_size = self.vocab_size;
        let rows: Vec<PartialRow> = rows.into_iter().map(|row| row.within(vocab_size)).collect();
        let decided = self.chain.decide(&rows, &mut self.history);
        let decided = decided.map_err(refused)?;
        Ok(decided.map(|decided| {
            let before = (self.committed + decided.verdict.emitted.len()).checked_sub(1);
            let at = before.and_then(|before| Some((before, before.checked_sub(from)?)));
            let last = at.and_then(|(before, at)| Some(SeenRow::of(before, rows.get(at)?)));
            (decided, last)
        }))
    }
}

/// Computes on a thread that may be kept busy.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RoundError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| RoundError::Dropped)
}

/// Returns what a round is told that parts of rows cannot decide.
fn refused(refusal: RowRefusal) -> RoundError {
    match refusal {
        RowRefusal::NoSupport => DistributionError::NoSupport.into(),
        // The engine left out what it was asked for.
        RowRefusal::NotKnown(_) => {
            let why = "the engine left out a token that it was asked for";
            RoundError::Other(Failure::Unavailable.status(why))
        }
        // Such sessions are not opened.
        RowRefusal::RepetitionPenalty
        | RowRefusal::Verification(_)
        | RowRefusal::TargetDistribution
        | RowRefusal::AtCoordinator => {
            RoundError::Other(Failure::NotOffered.status(refusal.to_string()))
        }
    }
}

#[cfg(test)]
mod tests;
