//! A scoring engine in memory, for tests: its rows depend on all tokens before them, and it records each request.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use engines::{
    EngineCaps, EngineIdentity, Ids, ScoreRequest, ScoredRows, ScoredSequence, ScoringEngine,
    ScoringError,
};
use speculation::TokenId;
use speculation::certificate::PartialRow;
use speculation::logprobs::Likely;
use tokio::sync::watch;

/// Length of its rows.
pub(in crate::remote) const ROW_LEN: usize = 16;
/// A sequence with this token is refused, whatever else is in the request.
pub(in crate::remote) const REFUSED: TokenId = 15;

/// One request, as it came.
#[derive(Clone, Debug)]
pub(in crate::remote) struct RecordedRequest {
    /// The tokens of each sequence.
    pub(in crate::remote) sequences: Vec<Vec<TokenId>>,
    pub(in crate::remote) salts: Vec<String>,
    pub(in crate::remote) top: usize,
    pub(in crate::remote) deadline: Instant,
}

/// The engine.
#[derive(Debug, Default)]
pub(in crate::remote) struct FakeEngine {
    asked: Mutex<Vec<RecordedRequest>>,
    /// How the next requests fail that do.
    failures: Mutex<VecDeque<Option<ScoringError>>>,
    /// Whether requests wait.
    is_held: Mutex<bool>,
    released: Condvar,
    /// Requests that have come.
    begun: watch::Sender<usize>,
}

impl FakeEngine {
    /// One whose first requests fail so, one after another; those with none do not.
    pub(in crate::remote) fn failing(
        failures: impl IntoIterator<Item = Option<ScoringError>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            failures: Mutex::new(failures.into_iter().collect()),
            ..Self::default()
        })
    }

    /// Lets requests wait until [`Self::release`].
    pub(in crate::remote) fn hold(&self) {
        *self.is_held.lock().expect("no panic") = true;
    }

    pub(in crate::remote) fn release(&self) {
        *self.is_held.lock().expect("no panic") = false;
        self.released.notify_all();
    }

    /// Waits until so many requests have come, those that wait included.
    pub(in crate::remote) async fn begun(&self, requests: usize) {
        let mut begun = self.begun.subscribe();
        let begun = begun.wait_for(|begun| *begun >= requests);
        let limit = Duration::from_secs(10);
        let begun = tokio::time::timeout(limit, begun).await;
        begun.expect("requests come").expect("an engine");
    }

    /// How many committed tokens of `sequence` an earlier request of the same salt began with.
    fn cached(&self, sequence: &ScoredSequence<'_>) -> usize {
        let asked = self.asked.lock().expect("no panic");
        let earlier = asked.split_last().map_or(&[][..], |(_, earlier)| earlier);
        let sequences = earlier
            .iter()
            .flat_map(|it| it.sequences.iter().zip(&it.salts));
        let alike = sequences.filter(|(_, salt)| *salt == sequence.salt);
        let shared = alike.map(|(tokens, _)| {
            let both = tokens.iter().zip(&sequence.tokens[..sequence.committed]);
            both.take_while(|(one, other)| one == other).count()
        });
        shared.max().unwrap_or(0)
    }

    /// The requests so far.
    pub(in crate::remote) fn asked(&self) -> Vec<RecordedRequest> {
        self.asked.lock().expect("no panic").clone()
    }
}

/// The rows of `sequence`, each with its `top` most likely tokens and those asked for.
pub(in crate::remote) fn rows(sequence: &ScoredSequence<'_>, top: usize) -> Vec<PartialRow> {
    let row = |(at, asked): (usize, &Vec<TokenId>)| {
        let logprobs = logprobs(&sequence.tokens[..sequence.committed + at]);
        let likely = |token: TokenId| Likely {
            token,
            logprob: logprobs[token as usize],
        };
        let mut ranked: Vec<Likely> = (0..ROW_LEN as TokenId).map(likely).collect();
        ranked.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));
        ranked.truncate(top);
        let asked: Vec<Likely> = asked.iter().copied().map(likely).collect();
        PartialRow::new(ROW_LEN, top, &ranked, &asked, 1e-9).expect("a row")
    };
    sequence.asked.iter().enumerate().map(row).collect()
}

/// A distribution that depends on every one of `tokens`.
fn logprobs(tokens: &[TokenId]) -> [f64; ROW_LEN] {
    let seed = tokens.iter().fold(1_u64, |seed, &token| {
        (seed * 31 + u64::from(token) + 1) % 1_000_003
    });
    let weights: [f64; ROW_LEN] =
        std::array::from_fn(|token| 1.0 + ((seed * (token as u64 + 3)) % 97) as f64);
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| (weight / sum).ln())
}

impl ScoringEngine for FakeEngine {
    fn caps(&self) -> EngineCaps {
        EngineCaps {
            ids: Ids::PerRow,
            keeps_cache: true,
            max_sequences: usize::MAX,
            parts_tenants: true,
        }
    }

    fn score(
        &self,
        scoring: &ScoreRequest<'_>,
        deadline: Instant,
    ) -> Result<Vec<ScoredRows>, ScoringError> {
        scoring.check(ROW_LEN, usize::MAX)?;
        let sequences = scoring.sequences;
        self.asked.lock().expect("no panic").push(RecordedRequest {
            sequences: sequences.iter().map(|it| it.tokens.to_vec()).collect(),
            salts: sequences.iter().map(|it| it.salt.to_owned()).collect(),
            top: scoring.top,
            deadline,
        });
        self.begun.send_modify(|begun| *begun += 1);
        let held = self.is_held.lock().expect("no panic");
        drop(self.released.wait_while(held, |held| *held));
        let failure = self.failures.lock().expect("no panic").pop_front();
        if let Some(failure) = failure.flatten() {
            return Err(failure);
        }
        if sequences.iter().any(|it| it.tokens.contains(&REFUSED)) {
            return Err(ScoringError::Status(400));
        }
        let scored = sequences.iter().map(|it| ScoredRows {
            rows: rows(it, scoring.top),
            cached_tokens: self.cached(it),
        });
        Ok(scored.collect())
    }

    fn tokens_of(&self, _: &str, _: Instant) -> Result<Vec<TokenId>, ScoringError> {
        Err(ScoringError::NotOffered("tokens of text"))
    }

    fn identity(&self, _: Instant) -> Result<EngineIdentity, ScoringError> {
        Err(ScoringError::NotOffered("an identity"))
    }

    fn is_well(&self, _: Instant) -> Result<(), ScoringError> {
        Ok(())
    }
}
