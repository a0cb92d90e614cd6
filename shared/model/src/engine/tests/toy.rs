//! A model that tells what it was asked, a task that reports what it got, and an engine with both.

use std::{num::NonZeroUsize, sync::MutexGuard, thread::JoinHandle};

use speculation::{
    TokenId,
    ports::{KvCache, LanguageModel, ModelShape, Rows, Segment},
};

use super::*;

/// How long a test waits for what must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Size of the toy's vocabulary.
pub(super) const VOCAB: usize = 50;
/// Tokens at which the toy model misbehaves.
pub(super) const FAILING: TokenId = 48;
pub(super) const PANICKING: TokenId = 49;

/// A model whose logits tell the tokens they were computed from: the row of a position names the
/// sum of all tokens up to it, and a hundred times that of the source.
#[derive(Clone, Default)]
pub(super) struct Toy {
    /// Tokens forwarded in each forward, one entry a segment.
    pub(super) forwards: Arc<Mutex<Vec<Vec<usize>>>>,
    /// Held while a forward runs, so that a test can hold one up.
    pub(super) gate: Arc<Mutex<()>>,
    /// Sources in the order they were encoded.
    pub(super) encoded: Arc<Mutex<Vec<Vec<TokenId>>>>,
    /// Longest source; 0 of a model without an encoder.
    pub(super) source_len: usize,
    /// How long a forward takes for each token, and in addition.
    pub(super) token_time: Duration,
    pub(super) forward_time: Duration,
}

#[derive(Clone, Default)]
pub(super) struct ToyCache {
    source: TokenId,
    tokens: Vec<TokenId>,
}

impl KvCache for ToyCache {
    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the toy was told to fail")]
pub(super) struct ToyError;

impl LanguageModel for Toy {
    type Cache = ToyCache;
    type Error = ToyError;

    fn shape(&self) -> ModelShape {
        ModelShape {
            vocab_size: VOCAB,
            hidden_size: 1,
            context_len: 40,
            source_len: self.source_len,
        }
    }

    fn new_cache(&self) -> ToyCache {
        ToyCache::default()
    }

    fn encode(&mut self, cache: &mut ToyCache, source: &[TokenId]) -> Result<(), ToyError> {
        self.encoded.lock().unwrap().push(source.to_vec());
        *cache = ToyCache {
            source: source.iter().sum(),
            tokens: Vec::new(),
        };
        Ok(())
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, ToyCache>],
        rows: &mut Rows,
    ) -> Result<(), ToyError> {
        let _gate = self.gate.lock();
        let tokens = || batch.iter().flat_map(|segment| segment.tokens);
        assert!(
            !tokens().any(|&token| token == PANICKING),
            "the toy was told to panic"
        );
        if tokens().any(|&token| token == FAILING) {
            return Err(ToyError);
        }
        let took = self.forward_time + self.token_time * tokens().count() as u32;
        std::thread::sleep(took);
        rows.vocab_size = VOCAB;
        rows.logits.clear();
        rows.hidden.clear();
        for segment in &mut *batch {
            for (i, &token) in segment.tokens.iter().enumerate() {
                let cache = &mut *segment.cache;
                cache.tokens.push(token);
                if i >= segment.scored_from {
                    let sum = cache.tokens.iter().sum::<TokenId>() + 100 * cache.source;
                    let sum = sum as f32;
                    rows.logits.extend([sum; VOCAB]);
                    rows.hidden.extend(rows.want_hidden.then_some(sum));
                }
            }
        }
        let sizes = batch.iter().map(|segment| segment.tokens.len()).collect();
        self.forwards.lock().unwrap().push(sizes);
        Ok(())
    }
}

pub(super) type Report = Result<(Vec<f32>, StepTiming), TaskError>;

/// Scores from `scored_from` on, then goes on with `next` if it is given, then decodes `extra` tokens more,
/// each a 1.
pub(super) struct Score {
    pub(super) source: Vec<TokenId>,
    pub(super) tokens: Vec<TokenId>,
    pub(super) parents: Vec<Option<u32>>,
    pub(super) scored_from: usize,
    pub(super) next: Option<Vec<TokenId>>,
    pub(super) extra: usize,
    pub(super) cancelled: Arc<AtomicBool>,
    /// Whether the model is the toy, of which the first of each row is reported.
    is_toy: bool,
    reports: Sender<Report>,
}

impl Score {
    /// Scores all of `tokens` on the toy, and reports sums.
    pub(super) fn sums(tokens: &[TokenId]) -> (Self, Receiver<Report>) {
        let (mut task, receiver) = Self::rows(tokens);
        (task.scored_from, task.is_toy) = (0, true);
        (task, receiver)
    }

    /// Scores the last of `tokens` on any model, and reports whole rows.
    pub(super) fn rows(tokens: &[TokenId]) -> (Self, Receiver<Report>) {
        let (reports, receiver) = channel();
        let task = Self {
            source: Vec::new(),
            tokens: tokens.to_vec(),
            parents: Vec::new(),
            scored_from: tokens.len() - 1,
            next: None,
            extra: 0,
            cancelled: Arc::default(),
            is_toy: false,
            reports,
        };
        (task, receiver)
    }
}

impl Task for Score {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn source(&self) -> &[TokenId] {
        &self.source
    }

    fn scored_from(&self) -> usize {
        self.scored_from
    }

    fn parents(&self) -> &[Option<u32>] {
        &self.parents
    }

    fn wants_hidden(&self) -> bool {
        self.is_toy
    }

    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress {
        let figures = rows.timing;
        let reported = if self.is_toy {
            let count = rows.logits.len() / rows.vocab_size;
            let sums: Vec<f32> = (0..count).map(|row| rows.row(row)[0]).collect();
            assert!((0..count).all(|row| rows.hidden(row) == [sums[row]]));
            sums
        } else {
            rows.logits.to_vec()
        };
        let _closed = self.reports.send(Ok((reported, figures)));
        if let Some(next) = self.next.take() {
            self.tokens = next;
            self.parents.clear();
        } else if self.extra > 0 {
            self.extra -= 1;
            self.tokens.push(1);
        } else {
            return TaskProgress::Done;
        }
        self.scored_from = self.tokens.len() - 1;
        TaskProgress::Continue
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn fail(self: Box<Self>, error: TaskError) {
        let _closed = self.reports.send(Err(error));
    }
}

pub(super) struct Bench {
    pub(super) toy: Toy,
    pub(super) handle: EngineHandle,
    pub(super) thread: JoinHandle<()>,
}

impl Bench {
    pub(super) fn new(change: impl FnOnce(&mut EngineConfig)) -> Self {
        Self::of(Toy::default(), change)
    }

    pub(super) fn of(toy: Toy, change: impl FnOnce(&mut EngineConfig)) -> Self {
        // How long the toy takes depends on what else the machine does.
        let mut config = EngineConfig {
            prefill_time: None,
            ..EngineConfig::default()
        };
        change(&mut config);
        let (handle, thread) = spawn(toy.clone(), config, "toy").unwrap();
        toy.forwards.lock().unwrap().clear();
        Self {
            toy,
            handle,
            thread,
        }
    }

    pub(super) fn try_submit(
        &self,
        slot: u64,
        tokens: &[TokenId],
        scored_from: usize,
        extra: usize,
    ) -> Result<Receiver<Report>, Rejected> {
        self.try_write(slot, &[], tokens, scored_from, extra)
    }

    /// The same, written from `source`.
    pub(super) fn try_write(
        &self,
        slot: u64,
        source: &[TokenId],
        tokens: &[TokenId],
        scored_from: usize,
        extra: usize,
    ) -> Result<Receiver<Report>, Rejected> {
        let (mut task, receiver) = Score::sums(tokens);
        task.source = source.to_vec();
        (task.scored_from, task.extra) = (scored_from, extra);
        let submitted = self.handle.try_submit(SlotId(slot), task);
        submitted.map(|()| receiver)
    }

    pub(super) fn submit(
        &self,
        slot: u64,
        tokens: &[TokenId],
        scored_from: usize,
    ) -> Receiver<Report> {
        self.try_submit(slot, tokens, scored_from, 0).unwrap()
    }

    /// Holds the engine up in a forward of one token of slot 0, until what is returned is dropped.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        let gate = self.toy.gate.lock().unwrap();
        drop(self.submit(0, &[1], 0));
        self.until(|gauges| gauges.queued == 0);
        gate
    }

    pub(super) fn forwards(&self) -> Vec<Vec<usize>> {
        std::mem::take(&mut self.toy.forwards.lock().unwrap())
    }

    /// Waits until the gauges say what they should.
    pub(super) fn until(&self, condition: impl Fn(EngineStats) -> bool) {
        for _ in 0..2000 {
            if condition(self.handle.stats()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("gauges stay at {:?}", self.handle.stats());
    }
}

pub(super) fn sums(receiver: &Receiver<Report>) -> Vec<f32> {
    receiver.recv_timeout(PATIENCE).unwrap().unwrap().0
}

pub(super) fn bound(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}
