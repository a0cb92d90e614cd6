//! What waits for an engine, and the threads that ask it: rounds of several sessions go into one request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engines::{ScoreRequest, ScoredRows, ScoredSequence, ScoringEngine, ScoringError};
use model::engine::StepTiming;
use parking_lot::{Condvar, Mutex};
use peer::RoundError;
use speculation::TokenId;
use speculation::certificate::PartialRow;
use tokio::sync::oneshot;
use wire::failure::Failure;
use wire::status::overloaded;

/// How long a coordinator should wait where too much waits here.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Rows of one sequence that are wanted.
pub(super) struct RowRequest {
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

/// The rows, and what they cost; as reused counts what the engine's cache held, of this session's earlier rounds, too.
pub(super) type Answered = Result<(Vec<PartialRow>, StepTiming), RoundError>;

struct QueuedRequest {
    rows: RowRequest,
    queued: Instant,
    answer: oneshot::Sender<Answered>,
}

/// What waits for an engine. Its threads end with it.
pub(super) struct Queue(Arc<SharedQueue>);

struct SharedQueue {
    /// Most requests that may wait.
    most: usize,
    waiting: Mutex<WaitingRequests>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingRequests {
    jobs: VecDeque<QueuedRequest>,
    is_closed: bool,
}

impl WaitingRequests {
    /// Leaves out what nobody waits for.
    fn forget_abandoned(&mut self) {
        self.jobs.retain(|job| !job.answer.is_closed());
    }
}

impl Queue {
    /// Creates a queue of at most `most` before `engine`, which is asked by `threads` threads, for at most `batch` sequences at
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
        let shared = Arc::new(SharedQueue {
            most,
            waiting: Mutex::default(),
            changed: Condvar::new(),
        });
        let queue = Self(Arc::clone(&shared));
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
    pub(super) async fn ask(&self, rows: RowRequest) -> Answered {
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.0.waiting.lock();
            waiting.forget_abandoned();
            let most = self.0.most;
            if waiting.jobs.len() >= most {
                let why = format!(
                    "{most} rounds wait for the engine, which is verifier.engine.max_queue"
                );
                return Err(RoundError::Other(overloaded(why, RETRY_AFTER)));
            }
            waiting.jobs.push_back(QueuedRequest {
                rows,
                queued: Instant::now(),
                answer,
            });
        }
        self.0.changed.notify_one();
        answered.await.map_err(|_| RoundError::Dropped)?
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.0.waiting.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl SharedQueue {
    /// Takes the job that waits the longest, and at most `batch` in all that want as many most likely tokens; none at the end.
    fn next(&self, batch: usize) -> Option<Vec<QueuedRequest>> {
        let mut waiting = self.waiting.lock();
        loop {
            waiting.forget_abandoned();
            if let Some(first) = waiting.jobs.pop_front() {
                let top = first.rows.top;
                let mut jobs = vec![first];
                let mut at = 0;
                while jobs.len() < batch && at < waiting.jobs.len() {
                    if waiting.jobs[at].rows.top == top {
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
            self.changed.wait(&mut waiting);
        }
    }
}

/// Asks the engine for the rows of `jobs` at once, and again for each alone if one of them may be what it refused.
fn answer(engine: &dyn ScoringEngine, jobs: Vec<QueuedRequest>) {
    match score(engine, &jobs) {
        Ok((scored, step)) => {
            for (job, scored) in jobs.into_iter().zip(scored) {
                let step = StepTiming {
                    forwarded_tokens: scored.rows.len(),
                    reused_tokens: scored.cached_tokens,
                    ..step
                };
                // The receiver is gone if nobody waits any more.
                let _ = job.answer.send(Ok((scored.rows, step)));
            }
        }
        Err(error) if jobs.len() > 1 && !is_of_the_engine(&error) => {
            for job in jobs {
                answer(engine, vec![job]);
            }
        }
        Err(error) => {
            for job in jobs {
                let _ = job.answer.send(Err(failure(&error)));
            }
        }
    }
}

/// Returns what a round is told of an engine that gave no rows: another verifier may do better.
fn failure(error: &ScoringError) -> RoundError {
    if let ScoringError::Late(allowed) = error {
        return RoundError::Late(*allowed);
    }
    RoundError::Other(Failure::Unavailable.status(error.to_string()))
}

/// Returns whether the error is of the engine itself, whatever it was asked.
fn is_of_the_engine(error: &ScoringError) -> bool {
    matches!(
        error,
        ScoringError::Unreachable(_) | ScoringError::Late(_) | ScoringError::Busy { .. }
    )
}

/// Returns the rows of each job, and what the request cost each.
fn score(
    engine: &dyn ScoringEngine,
    jobs: &[QueuedRequest],
) -> Result<(Vec<ScoredRows>, StepTiming), ScoringError> {
    let sequences: Vec<ScoredSequence<'_>> = jobs.iter().map(|job| job.rows.sequence()).collect();
    let request = ScoreRequest {
        sequences: &sequences,
        top: jobs.first().map_or(0, |job| job.rows.top),
    };
    let deadline = jobs.iter().map(|job| job.rows.deadline).max();
    let deadline = deadline.unwrap_or_else(Instant::now);
    let began = Instant::now();
    let scored = match engine.score(&request, deadline) {
        // A connection that was kept may have ended in the meantime; a new one tells.
        Err(ScoringError::Unreachable(_)) => engine.score(&request, deadline),
        answered => answered,
    }?;
    let queued = jobs.iter().map(|job| job.queued).min();
    let step = StepTiming {
        queue: queued.map_or(Duration::ZERO, |queued| began.duration_since(queued)),
        forward: began.elapsed(),
        forwarded_tokens: 0,
        reused_tokens: 0,
        batch_tokens: scored.iter().map(|it| it.rows.len()).sum(),
        batch_sequences: scored.len(),
        row: Duration::ZERO,
        price: 0.0,
    };
    Ok((scored, step))
}

impl RowRequest {
    fn sequence(&self) -> ScoredSequence<'_> {
        ScoredSequence {
            tokens: &self.tokens,
            committed: self.committed,
            asked: &self.asked,
            salt: &self.salt,
        }
    }
}

#[cfg(test)]
mod tests;
