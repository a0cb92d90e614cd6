//! What an engine that keeps a sequence's committed tokens is made to read.

use engines::ScoringEngine;
use peer::progress;
use wire::v1;

use super::super::queue::Queue;
use super::super::standing::Standing;
use super::super::tests::fake::{FakeEngine, ROW_LEN};
use super::*;

fn remote(engine: &Arc<FakeEngine>) -> Remote {
    let engine: Arc<dyn ScoringEngine> = Arc::clone(engine) as _;
    Remote {
        queue: Queue::new(&engine, 8, 1, 4).expect("a thread"),
        caps: engine.caps(),
        row_len: ROW_LEN,
        standing: Arc::new(Standing::new(v1::Numerics::default())),
        shares_tenants: false,
    }
}

/// A long prompt is read part by part, once; later rounds leave to the engine's cache what it has read.
#[tokio::test]
async fn what_was_read_once_is_not_read_again() {
    let engine = Arc::new(FakeEngine::default());
    let remote = remote(&engine);
    let mut memory = RemoteSession::default();
    let tokens: Vec<TokenId> = (0..3 * PART + 5).map(|at| (at % 7) as TokenId).collect();
    let (reporter, _) = progress::channel();
    let limit = Duration::from_secs(10);
    for (len, expected) in [
        (2 * PART + 5, vec![PART, 2 * PART]),
        // The next rounds.
        (2 * PART + 9, vec![]),
        (2 * PART + 9, vec![]),
        // So much output in one go is read in parts again.
        (3 * PART + 5, vec![]),
    ] {
        let before = engine.asked().len();
        let reading = remote.read(&mut memory, &tokens[..len], &reporter, limit);
        reading.await.expect("an engine");
        let asked = &engine.asked()[before..];
        let lens: Vec<usize> = asked.iter().map(|asked| asked.sequences[0].len()).collect();
        assert_eq!(lens, expected, "of {len}");
        assert!(asked.iter().all(|asked| asked.top == 1));
    }
    // What another engine holds is not known.
    memory.read = 0;
    let before = engine.asked().len();
    let reading = remote.read(&mut memory, &tokens, &reporter, limit);
    reading.await.expect("an engine");
    assert_eq!(engine.asked().len() - before, 3);
}
