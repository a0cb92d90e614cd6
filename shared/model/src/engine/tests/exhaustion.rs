//! Memory that runs out, and memory that tells how much there is.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicUsize;

use speculation::{
    TokenId,
    ports::{KvCache, KvMemory, LanguageModel, ModelShape, Rows, Segment},
};

use super::generating::small_model;
use super::toy::{FAILING, PATIENCE, Report, Score, Toy, ToyCache};
use super::*;
use crate::Model;

/// A toy in a memory that holds `ROOM` tokens of all sequences together, of which it tells nobody.
struct Cramped {
    toy: Toy,
    held: Arc<AtomicUsize>,
    /// Forwards that were asked for.
    requested: Arc<AtomicUsize>,
}

const ROOM: usize = 10;

/// A cache in that memory.
struct CrampedCache {
    cache: ToyCache,
    held: Arc<AtomicUsize>,
}

#[derive(Debug, thiserror::Error)]
enum CrampedError {
    #[error("the memory is full")]
    Full,
    #[error("the toy failed")]
    Toy,
}

impl KvCache for CrampedCache {
    fn len(&self) -> usize {
        self.cache.len()
    }

    fn truncate(&mut self, len: usize) {
        let before = self.len();
        self.cache.truncate(len);
        self.held.fetch_sub(before - self.len(), Ordering::Relaxed);
    }
}

impl Drop for CrampedCache {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

impl LanguageModel for Cramped {
    type Cache = CrampedCache;
    type Error = CrampedError;

    fn shape(&self) -> ModelShape {
        self.toy.shape()
    }

    fn new_cache(&self) -> CrampedCache {
        CrampedCache {
            cache: self.toy.new_cache(),
            held: Arc::clone(&self.held),
        }
    }

    fn is_out_of_memory(error: &CrampedError) -> bool {
        matches!(error, CrampedError::Full)
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, CrampedCache>],
        rows: &mut Rows,
    ) -> Result<(), CrampedError> {
        self.requested.fetch_add(1, Ordering::Relaxed);
        let tokens: usize = batch.iter().map(|segment| segment.tokens.len()).sum();
        if self.held.load(Ordering::Relaxed) + tokens > ROOM {
            return Err(CrampedError::Full);
        }
        let mut batch: Vec<_> = batch
            .iter_mut()
            .map(|segment| Segment {
                cache: &mut segment.cache.cache,
                tokens: segment.tokens,
                parents: segment.parents,
                scored_from: segment.scored_from,
            })
            .collect();
        let forwarded = self.toy.forward(&mut batch, rows);
        forwarded.map_err(|_| CrampedError::Toy)?;
        self.held.fetch_add(tokens, Ordering::Relaxed);
        Ok(())
    }
}

struct Engine {
    handle: EngineHandle,
    requested: Arc<AtomicUsize>,
}

impl Engine {
    fn new() -> Self {
        let requested = Arc::<AtomicUsize>::default();
        let model = Cramped {
            toy: Toy::default(),
            held: Arc::default(),
            requested: Arc::clone(&requested),
        };
        let (handle, _) = spawn(model, EngineConfig::default(), "cramped").unwrap();
        Self { handle, requested }
    }

    /// Scores the tokens, and returns what became of them, in how many forwards, and after how many evictions.
    fn score(&self, slot: u64, tokens: &[TokenId]) -> (Report, usize, u64) {
        let (requested, evicted) = (self.requested(), self.handle.stats().evictions);
        let (mut task, receiver) = Score::sums(tokens);
        task.scored_from = tokens.len() - 1;
        self.handle.try_submit(SlotId(slot), task).unwrap();
        let report = receiver.recv_timeout(PATIENCE).unwrap();
        let evicted = self.handle.stats().evictions - evicted;
        (report, self.requested() - requested, evicted)
    }

    /// The same of what succeeds.
    fn sum(&self, slot: u64, tokens: &[TokenId]) -> (f32, usize, u64) {
        let (report, requested, evicted) = self.score(slot, tokens);
        (report.unwrap().0[0], requested, evicted)
    }

    fn requested(&self) -> usize {
        self.requested.load(Ordering::Relaxed)
    }
}

fn source(report: Report) -> String {
    let error = report.unwrap_err();
    std::error::Error::source(&error).unwrap().to_string()
}

#[test]
fn what_is_idle_makes_room_when_memory_runs_out() {
    let engine = Engine::new();
    assert_eq!(engine.sum(1, &[1; 4]), (4.0, 1, 0));
    assert_eq!(engine.sum(2, &[1; 5]), (5.0, 1, 0));
    assert_eq!(engine.sum(3, &[1; 6]), (6.0, 2, 2));
    // It is forwarded again as after any other eviction.
    assert_eq!(engine.sum(1, &[1; 4]), (4.0, 1, 0));
    assert_eq!(engine.handle.stats().reprefilled_tokens, 4);
    assert!(engine.handle.is_healthy());
}

#[test]
fn what_fits_nowhere_fails_after_one_more_try_and_others_go_on() {
    let engine = Engine::new();
    assert_eq!(engine.sum(1, &[1; 4]), (4.0, 1, 0));
    let (report, requested, evicted) = engine.score(2, &[1; 11]);
    assert_eq!(source(report), "the memory is full");
    assert_eq!((requested, evicted), (2, 1));
    // Its own sequence alone is idle now, and holds nothing.
    assert_eq!(engine.sum(3, &[1; 9]), (9.0, 1, 0));
    assert!(engine.handle.is_healthy());
}

#[test]
fn other_failures_evict_nothing() {
    let engine = Engine::new();
    assert_eq!(engine.sum(1, &[1; 4]), (4.0, 1, 0));
    let (report, requested, evicted) = engine.score(2, &[FAILING]);
    assert_eq!(source(report), "the toy failed");
    assert_eq!((requested, evicted), (1, 0));
    assert_eq!(engine.sum(1, &[1; 5]), (5.0, 1, 0));
}

/// A model that tells how much memory there is.
struct Telling {
    model: Model,
    free_pages: usize,
}

impl LanguageModel for Telling {
    type Cache = <Model as LanguageModel>::Cache;
    type Error = <Model as LanguageModel>::Error;

    fn shape(&self) -> ModelShape {
        self.model.shape()
    }

    fn new_cache(&self) -> Self::Cache {
        self.model.new_cache()
    }

    fn memory(&self) -> Option<KvMemory> {
        self.model.memory()
    }

    fn free_pages(&self) -> Option<usize> {
        Some(self.free_pages)
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, Self::Cache>],
        rows: &mut Rows,
    ) -> Result<(), Self::Error> {
        self.model.forward(batch, rows)
    }
}

#[test]
fn the_budget_is_what_is_free_unless_it_is_set() {
    let longest = |free_pages, kv_tokens, sharers| {
        let model = Telling {
            model: small_model(None),
            free_pages,
        };
        let config = EngineConfig {
            kv_tokens,
            sharers: NonZeroUsize::new(sharers).unwrap(),
            ..EngineConfig::default()
        };
        spawn(model, config, "telling").map(|(handle, _)| handle.longest_sequence())
    };
    // Two layers: three runs of 64 tokens, and a page that makes none.
    assert_eq!(longest(7, 0, 1).unwrap(), 192);
    assert_eq!(longest(7, 256, 1).unwrap(), 256);
    assert_eq!(longest(1 << 20, 0, 1).unwrap(), 256);
    let refused = longest(1, 0, 1).unwrap_err();
    assert!(matches!(refused, SpawnError::NoMemory { .. }));
    assert!(refused.to_string().contains("at least 64"), "{refused}");
    // Engines that share the memory get equal parts; a budget that was set is not shared.
    assert_eq!(longest(14, 0, 2).unwrap(), 192);
    assert_eq!(longest(7, 256, 2).unwrap(), 256);
}
