//! Sources through the engine, on a model whose rows tell what was encoded and what was forwarded.

use speculation::TokenId;

use super::toy::Toy;
use super::*;
use crate::forward_error::ForwardError;

/// Longest source of the model.
const SOURCE_LEN: usize = 6;

struct Sources(Bench);

impl Sources {
    fn new(change: impl FnOnce(&mut EngineConfig)) -> Self {
        let toy = Toy {
            source_len: SOURCE_LEN,
            ..Toy::default()
        };
        let sources = Self(Bench::of(toy, change));
        // Warming up encoded something: a decoder cannot be warmed up without.
        assert_eq!(sources.done(), (vec![vec![0]], vec![]));
        sources
    }

    /// Scores the last of `tokens`.
    fn submit(&self, slot: u64, source: &[TokenId], tokens: &[TokenId]) -> Receiver<Report> {
        let last = tokens.len() - 1;
        self.0.try_write(slot, source, tokens, last, 0).unwrap()
    }

    fn write(&self, slot: u64, source: &[TokenId], tokens: &[TokenId]) -> Report {
        let report = self.submit(slot, source, tokens);
        report.recv_timeout(PATIENCE).unwrap()
    }

    /// Returns what was encoded and forwarded since it was last asked.
    fn done(&self) -> (Vec<Vec<TokenId>>, Vec<Vec<usize>>) {
        let encoded = std::mem::take(&mut *self.0.toy.encoded.lock().unwrap());
        (encoded, self.0.forwards())
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
    let sources = Sources::new(|config| config.max_cached_sequences = bound(1));
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
    let bench = &sources.0;
    let gate = bench.toy.gate.lock().unwrap();
    let first = sources.submit(0, &[1], &[1]);
    bench.until(|gauges| gauges.queued == 0);
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
    let (tokens, source_len) = (7, SOURCE_LEN);
    let (token, vocab_size) = (50, 50);
    for (source, expected) in [
        (&[][..], ForwardError::NoSource),
        (&[1; 7], ForwardError::SourceTooLong { tokens, source_len }),
        (
            &[1, 50],
            ForwardError::TokenOutOfRange { token, vocab_size },
        ),
    ] {
        let error = refused(source);
        assert!(
            matches!(&error, TaskError::Refused(found) if *found == expected),
            "{error}"
        );
    }
    assert_eq!(sources.done(), (vec![], vec![]));
    assert_eq!(sources.write(1, &[1, 2], &[4, 5, 6]).unwrap().0, [315.0]);

    // A model without an encoder takes none.
    let bench = Bench::new(|_| {});
    let report = bench.try_write(1, &[1], &[4], 0, 0).unwrap();
    let refused = report.recv_timeout(PATIENCE).unwrap().unwrap_err();
    let reported = "the model takes sources of 0 tokens, this one has 1";
    assert_eq!(refused.to_string(), reported);
}
