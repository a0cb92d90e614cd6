//! Sources through the engine, on a model whose rows tell what was encoded and what was forwarded.

use speculation::TokenId;
use speculation::ports::{KvCache, LanguageModel, ModelShape, Rows, Segment};

use super::toy::{ToyError, VOCAB};
use super::*;

/// Longest source of the model.
const SOURCE_LEN: usize = 6;

/// A row is the sum of the tokens up to it, and a hundred times that of the source.
#[derive(Clone, Default)]
struct Reader {
    /// Sources in the order they were encoded.
    encoded: Arc<Mutex<Vec<Vec<TokenId>>>>,
    /// Tokens forwarded in each forward, one entry a segment.
    forwards: Arc<Mutex<Vec<Vec<usize>>>>,
    /// Held while a forward runs, so that a test can hold one up.
    gate: Arc<Mutex<()>>,
}

#[derive(Clone, Default)]
struct ReaderCache {
    source: TokenId,
    tokens: Vec<TokenId>,
}

impl KvCache for ReaderCache {
    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }
}

impl LanguageModel for Reader {
    type Cache = ReaderCache;
    type Error = ToyError;

    fn shape(&self) -> ModelShape {
        ModelShape {
            vocab_size: VOCAB,
            hidden_size: 0,
            context_len: 40,
            source_len: SOURCE_LEN,
        }
    }

    fn new_cache(&self) -> ReaderCache {
        ReaderCache::default()
    }

    fn encode(&mut self, cache: &mut ReaderCache, source: &[TokenId]) -> Result<(), ToyError> {
        self.encoded.lock().unwrap().push(source.to_vec());
        *cache = ReaderCache {
            source: source.iter().sum(),
            tokens: Vec::new(),
        };
        Ok(())
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, ReaderCache>],
        rows: &mut Rows,
    ) -> Result<(), ToyError> {
        let _gate = self.gate.lock();
        rows.vocab_size = VOCAB;
        rows.logits.clear();
        for segment in &mut *batch {
            for (i, &token) in segment.tokens.iter().enumerate() {
                segment.cache.tokens.push(token);
                if i >= segment.scored_from {
                    let sum = segment.cache.tokens.iter().sum::<TokenId>();
                    rows.logits
                        .extend([(sum + 100 * segment.cache.source) as f32; VOCAB]);
                }
            }
        }
        let sizes = batch.iter().map(|segment| segment.tokens.len()).collect();
        self.forwards.lock().unwrap().push(sizes);
        Ok(())
    }
}

/// Scores the last of its tokens.
struct Write {
    source: Vec<TokenId>,
    tokens: Vec<TokenId>,
    reports: Sender<Report>,
}

impl Task for Write {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn source(&self) -> &[TokenId] {
        &self.source
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn step(&mut self, rows: StepRows<'_>) -> Progress {
        let _closed = self
            .reports
            .send(Ok((vec![rows.row(0)[0]], rows.figures())));
        Progress::Done
    }

    fn fail(self: Box<Self>, error: EngineError) {
        let _closed = self.reports.send(Err(error));
    }
}

struct Sources {
    model: Reader,
    handle: EngineHandle,
}

impl Sources {
    fn new(change: impl FnOnce(&mut EngineConfig)) -> Self {
        let mut config = EngineConfig::default();
        change(&mut config);
        let model = Reader::default();
        let (handle, _thread) = spawn(model.clone(), config, "reader").unwrap();
        // Warming up encoded something: a decoder cannot be warmed up without.
        assert_eq!(std::mem::take(&mut *model.encoded.lock().unwrap()), [[0]]);
        model.forwards.lock().unwrap().clear();
        Self { model, handle }
    }

    fn submit(&self, slot: u64, source: &[TokenId], tokens: &[TokenId]) -> Receiver<Report> {
        let (reports, receiver) = channel();
        let task = Write {
            source: source.to_vec(),
            tokens: tokens.to_vec(),
            reports,
        };
        self.handle.try_submit(SlotId(slot), task).unwrap();
        receiver
    }

    fn write(&self, slot: u64, source: &[TokenId], tokens: &[TokenId]) -> Report {
        let report = self.submit(slot, source, tokens);
        report.recv_timeout(PATIENCE).unwrap()
    }

    /// What was encoded and forwarded since it was last asked.
    fn done(&self) -> (Vec<Vec<TokenId>>, Vec<Vec<usize>>) {
        let encoded = std::mem::take(&mut *self.model.encoded.lock().unwrap());
        (
            encoded,
            std::mem::take(&mut *self.model.forwards.lock().unwrap()),
        )
    }
}

#[test]
fn a_source_is_encoded_once() {
    let sources = Sources::new(|_| {});
    let (rows, figures) = sources.write(1, &[1, 2], &[4, 5]).unwrap();
    assert_eq!(rows, [309.0]);
    // The source counts as prefill.
    assert_eq!(figures.forwarded_tokens, 4);
    assert_eq!(sources.done(), (vec![vec![1, 2]], vec![vec![2]]));
    let (rows, figures) = sources.write(1, &[1, 2], &[4, 5, 6]).unwrap();
    assert_eq!((rows, figures.forwarded_tokens), (vec![315.0], 1));
    assert_eq!(sources.done(), (vec![], vec![vec![1]]));
}

#[test]
fn tokens_written_from_another_source_are_forgotten() {
    let sources = Sources::new(|_| {});
    sources.write(1, &[1, 2], &[4, 5, 6]).unwrap();
    sources.write(2, &[1, 2], &[4, 5, 6]).unwrap();
    sources.done();
    // The same tokens, every one of which the cache holds.
    let (rows, _) = sources.write(1, &[3, 1], &[4, 5, 6, 7]).unwrap();
    assert_eq!(rows, [422.0]);
    assert_eq!(sources.done(), (vec![vec![3, 1]], vec![vec![4]]));
    // The other sequence has its own still.
    let (rows, _) = sources.write(2, &[1, 2], &[4, 5, 6, 7]).unwrap();
    assert_eq!(rows, [322.0]);
    assert_eq!(sources.done(), (vec![], vec![vec![1]]));
}

#[test]
fn an_evicted_sequence_is_encoded_again() {
    let sources = Sources::new(|config| config.max_sequences = bound(1));
    sources.write(1, &[1, 2], &[4]).unwrap();
    sources.write(2, &[7], &[4]).unwrap();
    sources.done();
    let (rows, _) = sources.write(1, &[1, 2], &[4, 5]).unwrap();
    assert_eq!(rows, [309.0]);
    assert_eq!(sources.done(), (vec![vec![1, 2]], vec![vec![2]]));
}

#[test]
fn chunks_of_a_prefill_encode_once() {
    let sources = Sources::new(|config| config.prefill_chunk = bound(2));
    let (rows, figures) = sources.write(1, &[3, 1], &[1; 7]).unwrap();
    assert_eq!((rows, figures.forwarded_tokens), (vec![407.0], 9));
    let forwards = vec![vec![2], vec![2], vec![3]];
    assert_eq!(sources.done(), (vec![vec![3, 1]], forwards));
}

/// Together they come to more than a chunk: each waits for the one before, and nobody for all of them.
#[test]
fn many_sources_are_read_one_after_the_other() {
    let sources = Sources::new(|config| config.prefill_chunk = bound(5));
    sources.write(9, &[6], &[1]).unwrap();
    sources.done();
    let gate = sources.model.gate.lock().unwrap();
    let first = sources.submit(0, &[1], &[1]);
    for _ in 0..2_000 {
        if sources.handle.gauges().queued == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let reports = [
        sources.submit(1, &[2; 3], &[1]),
        sources.submit(2, &[3; 3], &[1]),
        sources.submit(3, &[4; 2], &[1]),
        sources.submit(9, &[6], &[1, 1]),
    ];
    drop(gate);
    first.recv_timeout(PATIENCE).unwrap().unwrap();
    let rows = reports.map(|report| report.recv_timeout(PATIENCE).unwrap().unwrap().0);
    assert_eq!(rows, [[601.0], [901.0], [801.0], [602.0]]);
    let (encoded, forwards) = sources.done();
    let lens: Vec<usize> = encoded.iter().map(Vec::len).collect();
    assert_eq!(lens, [1, 3, 2, 3]);
    // The sequence that was read before goes on in the first of the forwards.
    assert_eq!(forwards, [vec![1], vec![1, 1, 1], vec![1]]);
}

#[test]
fn sources_that_cannot_be_read_are_refused() {
    let sources = Sources::new(|_| {});
    sources.write(1, &[1, 2], &[4, 5]).unwrap();
    sources.done();
    let refused = |source: &[TokenId]| sources.write(1, source, &[4, 5, 6]).unwrap_err();
    assert!(matches!(refused(&[]), EngineError::NoSource));
    assert!(matches!(
        refused(&[1; 7]),
        EngineError::SourceTooLong {
            tokens: 7,
            source_len: SOURCE_LEN
        }
    ));
    assert!(matches!(
        refused(&[1, 50]),
        EngineError::TokenOutOfRange { token: 50, .. }
    ));
    assert_eq!(sources.done(), (vec![], vec![]));
    assert_eq!(sources.write(1, &[1, 2], &[4, 5, 6]).unwrap().0, [315.0]);

    // A model without an encoder takes none.
    let bench = Bench::new(|_| {});
    let (reports, receiver) = channel();
    let task = Write {
        source: vec![1],
        tokens: vec![4],
        reports,
    };
    bench.handle.try_submit(SlotId(1), task).unwrap();
    let refused = receiver.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(matches!(
        refused,
        EngineError::SourceTooLong { source_len: 0, .. }
    ));
}
