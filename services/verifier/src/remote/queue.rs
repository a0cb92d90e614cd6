//! What waits for an engine, and the threads that ask it: rounds of several sessions go into one request.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engines::{EngineError, Scoring, ScoringEngine, Sequence};
use model::engine::StepTiming;
use peer::RoundError;
use speculation::TokenId;
use speculation::certificate::PartialRow;
use tokio::sync::oneshot;
use wire::failure::Failure;
use wire::status::overloaded;

/// How long a coordinator should wait where too much waits here.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Rows of one sequence that are wanted.
pub(super) struct Wanted {
    /// Committed tokens, then draft tokens.
    pub(super) tokens: Vec<TokenId>,
    /// How many of them are committed.
    pub(super) committed: usize,
    /// How many most likely tokens are wanted of each row.
    pub(super) top: usize,
    /// The tokens that are wanted of each row.
    pub(super) asked: Vec<Vec<TokenId>>,
    /// Separates the sequence in the engine's prefix cache from those with other salts.
    pub(super) salt: Arc<str>,
    /// When nobody waits any more.
    pub(super) deadline: Instant,
}

/// The rows, and what they cost.
pub(super) type Answered = Result<(Vec<PartialRow>, StepTiming), RoundError>;

struct Job {
    wanted: Wanted,
    queued: Instant,
    answer: oneshot::Sender<Answered>,
}

/// What waits for an engine. Its threads end with it.
pub(super) struct Queue {
    shared: Arc<Shared>,
    most: usize,
}

struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Waiting {
    /// Leaves out what nobody waits for.
    fn forget_abandoned(&mut self) {
        self.jobs.retain(|job| !job.answer.is_closed());
    }
}

impl Queue {
    /// A queue of at most `most` before `engine`, which is asked by `threads` threads, for at most `batch` sequences at
    /// a time.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub(super) fn new(
        engine: &Arc<dyn ScoringEngine>,
        most: usize,
        threads: usize,
        batch: usize,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            changed: Condvar::new(),
        });
        let queue = Self {
            shared: Arc::clone(&shared),
            most,
        };
        for number in 0..threads {
            let (shared, engine) = (Arc::clone(&shared), Arc::clone(engine));
            let thread = std::thread::Builder::new().name(format!("target-remote-{number}"));
            thread.spawn(move || {
                while let Some(jobs) = shared.next(batch) {
                    answer(&*engine, jobs);
                }
            })?;
        }
        Ok(queue)
    }

    /// Has the engine asked.
    ///
    /// # Errors
    /// If too much waits, or the engine gives no rows.
    pub(super) async fn ask(&self, wanted: Wanted) -> Answered {
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.shared.lock();
            waiting.forget_abandoned();
            if waiting.jobs.len() >= self.most {
                let most = self.most;
                let why = format!(
                    "{most} rounds wait for the engine, which is verifier.engine.max_queue"
                );
                return Err(RoundError::Other(overloaded(why, RETRY_AFTER)));
            }
            waiting.jobs.push_back(Job {
                wanted,
                queued: Instant::now(),
                answer,
            });
        }
        self.shared.changed.notify_one();
        answered.await.map_err(|_| RoundError::Dropped)?
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job that waits the longest, and at most `batch` in all that want as many most likely tokens; none at the end.
    fn next(&self, batch: usize) -> Option<Vec<Job>> {
        let mut waiting = self.lock();
        loop {
            waiting.forget_abandoned();
            if let Some(first) = waiting.jobs.pop_front() {
                let top = first.wanted.top;
                let mut jobs = vec![first];
                let mut at = 0;
                while jobs.len() < batch && at < waiting.jobs.len() {
                    if waiting.jobs[at].wanted.top == top {
                        jobs.extend(waiting.jobs.remove(at));
                    } else {
                        at += 1;
                    }
                }
                return Some(jobs);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = (self.changed.wait(waiting)).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Asks the engine for the rows of `jobs` at once, and again for each alone if one of them may be what it refused.
fn answer(engine: &dyn ScoringEngine, jobs: Vec<Job>) {
    match score(engine, &jobs) {
        Ok((rows, step)) => {
            for (job, rows) in jobs.into_iter().zip(rows) {
                job.answer(Ok((rows, step)));
            }
        }
        Err(error) if jobs.len() > 1 && !is_of_the_engine(&error) => {
            for job in jobs {
                answer(engine, vec![job]);
            }
        }
        Err(error) => {
            for job in jobs {
                job.answer(Err(failure(&error)));
            }
        }
    }
}

/// Returns what a round is told of an engine that gave no rows: another verifier may do better.
fn failure(error: &EngineError) -> RoundError {
    if let EngineError::Late(allowed) = error {
        return RoundError::Late(*allowed);
    }
    RoundError::Other(Failure::Unavailable.status(error.to_string()))
}

/// Whether it is said of the engine, whatever it was asked.
fn is_of_the_engine(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Unreachable(_) | EngineError::Late(_) | EngineError::Busy { .. }
    )
}

/// The rows of each job, and what the request cost each.
fn score(
    engine: &dyn ScoringEngine,
    jobs: &[Job],
) -> Result<(Vec<Vec<PartialRow>>, StepTiming), EngineError> {
    let sequences: Vec<Sequence<'_>> = jobs.iter().map(|job| job.wanted.sequence()).collect();
    let scoring = Scoring {
        sequences: &sequences,
        top: jobs.first().map_or(0, |job| job.wanted.top),
    };
    let deadline = jobs.iter().map(|job| job.wanted.deadline).max();
    let deadline = deadline.unwrap_or_else(Instant::now);
    let began = Instant::now();
    let rows = match engine.score(&scoring, deadline) {
        // A connection that was kept may have ended in the meantime; a new one tells.
        Err(EngineError::Unreachable(_)) => engine.score(&scoring, deadline),
        answered => answered,
    }?;
    let queued = jobs.iter().map(|job| job.queued).min();
    let step = StepTiming {
        queue: queued.map_or(Duration::ZERO, |queued| began.duration_since(queued)),
        forward: began.elapsed(),
        forwarded_tokens: 0,
        batch_tokens: rows.iter().map(Vec::len).sum(),
        batch_sequences: rows.len(),
        row: Duration::ZERO,
    };
    Ok((rows, step))
}

impl Wanted {
    fn sequence(&self) -> Sequence<'_> {
        Sequence {
            tokens: &self.tokens,
            committed: self.committed,
            asked: &self.asked,
            salt: &self.salt,
        }
    }
}

impl Job {
    fn answer(self, answered: Answered) {
        let answered = answered.map(|(rows, step)| {
            let forwarded_tokens = rows.len();
            let step = StepTiming {
                forwarded_tokens,
                ..step
            };
            (rows, step)
        });
        // The receiver is gone if nobody waits any more.
        let _ = self.answer.send(answered);
    }
}

#[cfg(test)]
mod tests;
