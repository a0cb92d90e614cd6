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
use speculation::verification::Verdict;
use wire::failure::Failure;
use wire::open::SessionSpec;

use super::queue::RowRequest;
use super::seen::SeenRow;
use super::{Remote, RemoteSession, standing};

/// Tokens that an engine reads in one request, at most: a longer sequence is read part by part, so that the round tells
/// how far it is.
const PART: usize = 2_048;

/// A chain that is to be decided.
pub(super) struct EngineChain {
    pub(super) chain: OpenChain,
    /// That after the draft tokens that stand.
    pub(super) history: CountedHistory,
    /// Prompt, output and draft tokens.
    tokens: Vec<TokenId>,
    /// How many of them come before the draft tokens.
    committed: usize,
    /// Length of the tokenizer's rows.
    vocab_size: usize,
    /// What to ask for first.
    pub(super) query: RowQuery,
    /// The engine's generation at the beginning of the round.
    generation: u32,
    /// The row that the token before the draft tokens was decided by; once the chain is decided, that of its last token.
    pub(super) last: Option<SeenRow>,
    /// The session's salt.
    salt: Arc<str>,
    /// As in [`RemoteSession`].
    counted: usize,
    reused: usize,
}

impl EngineChain {
    /// Creates the chain of `drafts` after prompt and output, `tokens`, of a session of `spec`; `history` is that after
    /// them. The row kept in `memory` is taken.
    pub(super) fn new(
        spec: &SessionSpec,
        memory: &mut RemoteSession,
        history: CountedHistory,
        mut tokens: Vec<TokenId>,
        drafts: &[TokenId],
        test: Test,
    ) -> Self {
        let committed = tokens.len();
        tokens.extend(drafts);
        let base_len = (committed - spec.lead().len()) as u32;
        let chain = OpenChain::new(rules(spec, test), drafts, base_len);
        Self {
            query: chain.start(&[], false),
            chain,
            history,
            tokens,
            committed,
            vocab_size: spec.vocab_size as usize,
            generation: memory.generation.unwrap_or_default(),
            last: memory.last.take(),
            salt: Arc::clone(&memory.salt),
            counted: std::mem::replace(&mut memory.counted, usize::MAX),
            reused: std::mem::take(&mut memory.reused),
        }
    }

    /// Returns the chain of `drafts` after what `verdict` decided of this one.
    pub(super) fn after(
        mut self,
        spec: &SessionSpec,
        verdict: &Verdict,
        drafts: &[TokenId],
    ) -> Self {
        self.tokens.truncate(self.committed);
        self.tokens.extend_from_slice(&verdict.emitted);
        // The history is that after the draft tokens that stand.
        if let Some(&added) = verdict.emitted.get(verdict.path.len()) {
            self.history.push(added);
        }
        self.committed = self.tokens.len();
        self.tokens.extend_from_slice(drafts);
        let base_len = (self.committed - spec.lead().len()) as u32;
        self.chain = OpenChain::new(rules(spec, Test::Coupled), drafts, base_len);
        self.query = self.chain.start(&[], false);
        self
    }

    /// Returns the tokens whose rows are wanted, and those before them.
    fn scored(&self) -> &[TokenId] {
        &self.tokens[..self.committed + self.chain.scored().len()]
    }

    /// Decides as many tokens as `rows` prove; the first row follows `from` tokens. Once the chain is decided, returns the
    /// outcome, and keeps the row that decided its last token.
    fn decide(
        &mut self,
        from: usize,
        rows: Vec<PartialRow>,
    ) -> Result<Option<Decided>, RoundError> {
        let vocab_size = self.vocab_size;
        let rows: Vec<PartialRow> = rows.into_iter().map(|row| row.within(vocab_size)).collect();
        let decided = self.chain.decide(&rows, &mut self.history);
        let decided = decided.map_err(refused)?;
        if let Some(decided) = &decided {
            let before = (self.committed + decided.verdict.emitted.len()).checked_sub(1);
            let at = before.and_then(|before| Some((before, before.checked_sub(from)?)));
            self.last = at.and_then(|(before, at)| Some(SeenRow::of(before, rows.get(at)?)));
        }
        Ok(decided)
    }
}

impl Remote {
    /// Decides a chain. Returns it, the outcome, and the cost. `limit` bounds each request.
    ///
    /// # Errors
    /// If the engine gives no rows, or what is asked for cannot be decided by parts of them.
    pub(super) async fn resolve(
        &self,
        mut open: EngineChain,
        limit: Duration,
    ) -> Result<(EngineChain, Decided, Cost), RoundError> {
        let mut cost = Cost::default();
        loop {
            let began = Instant::now();
            let (mut query, ids) = (open.query, self.caps.ids);
            if ids == Ids::None {
                query.noise = 0;
            }
            let (mut at_work, mut asked) = in_background(move || {
                let asked = open.chain.asked(query, &open.history);
                (open, asked)
            })
            .await?;
            if ids == Ids::None && asked.iter().any(|ids| !ids.is_empty()) {
                // What must be known cannot be asked for: all of the row is.
                query = RowQuery::whole(self.row_len);
                asked.iter_mut().for_each(Vec::clear);
            }
            let is_whole = query.is_whole(at_work.vocab_size);
            let from = at_work.committed + at_work.chain.decided();
            let again = at_work.last.take().filter(|last| last.is_last_of(from));
            if again.is_some() {
                asked.insert(0, Vec::new());
            }
            let request = RowRequest {
                tokens: at_work.scored().to_vec(),
                committed: from - usize::from(again.is_some()),
                top: if is_whole { self.row_len } else { query.top },
                asked,
                salt: Arc::clone(&at_work.salt),
                deadline: Instant::now() + limit,
            };
            cost.accept += began.elapsed();
            let (mut rows, mut step) = self.queue.ask(request).await?;
            let found = step.reused_tokens.saturating_sub(at_work.counted);
            at_work.counted = usize::MAX;
            step.reused_tokens = std::mem::take(&mut at_work.reused) + found;
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
            if let Some(decided) = decided? {
                return Ok((open, decided, cost));
            }
            if is_whole {
                let why = "a whole row of the engine's decides nothing";
                return Err(RoundError::Other(Failure::Internal.status(why)));
            }
            open.query = query.grown(open.vocab_size);
        }
    }

    /// Has the engine read `tokens`, of which it has read some, as far as that takes long: the next request then reads
    /// at most [`PART`] of them.
    ///
    /// # Errors
    /// If it does not.
    pub(super) async fn read(
        &self,
        memory: &mut RemoteSession,
        tokens: &[TokenId],
        progress: &Reporter,
        limit: Duration,
    ) -> Result<(), RoundError> {
        let mut read = memory.read.min(tokens.len());
        while self.caps.keeps_cache && tokens.len() - read > PART {
            let (done, total) = (read + PART, tokens.len());
            let request = RowRequest {
                tokens: tokens[..done].to_vec(),
                committed: done,
                top: 1,
                asked: vec![Vec::new()],
                salt: Arc::clone(&memory.salt),
                deadline: Instant::now() + limit,
            };
            let (_, step) = self.queue.ask(request).await?;
            progress.part(done, total);
            memory.reused += step.reused_tokens.saturating_sub(memory.counted);
            memory.counted = memory.counted.max(done);
            read = done;
        }
        memory.read = tokens.len();
        Ok(())
    }
}

/// Returns what decides a chain of a session of `spec`, its draft tokens being tested as `test` says.
fn rules(spec: &SessionSpec, test: Test) -> Rules {
    Rules {
        params: Arc::clone(&spec.sampling),
        noise: spec.noise,
        vocab_size: spec.vocab_size as usize,
        test,
        logprobs: spec.logprobs.map(|top| top as usize),
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
        RowRefusal::Grammar
        | RowRefusal::RepetitionPenalty
        | RowRefusal::Verification(_)
        | RowRefusal::TargetDistribution
        | RowRefusal::AtCoordinator => {
            RoundError::Other(Failure::NotOffered.status(refusal.to_string()))
        }
    }
}

#[cfg(test)]
mod tests;
