//! What an engine that keeps a sequence's committed tokens is made to read.

use engines::ScoringEngine;
use peer::progress;
use speculation::history::History;
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

/// What the engine held before is told by the first round alone; what it holds of the session itself is not reuse.
#[tokio::test]
async fn what_another_session_began_with_is_told_once() {
    let engine = Arc::new(FakeEngine::default());
    let remote = remote(&engine);
    let tokens: Vec<TokenId> = (0..2 * PART + 5).map(|at| (at % 7) as TokenId).collect();
    let (reporter, _) = progress::channel();
    let limit = Duration::from_secs(10);
    let session = super::super::tests::spec(1, "a");
    // The first computes all; what begins alike with more than a part, or with less, finds that.
    for (shared, found) in [
        (usize::MAX, 0),
        (2 * PART + 1, 2 * PART + 1),
        (PART / 2, PART / 2),
    ] {
        let mut memory = RemoteSession::default();
        let mut own = tokens.clone();
        if let Some(other) = own.get_mut(shared) {
            *other = 8 + *other % 5;
        }
        for rounds in 0..3 {
            own.push(rounds);
            let reading = remote.read(&mut memory, &own, &reporter, limit);
            reading.await.expect("an engine");
            let history = History::new(&session.sampling, &session.prompt, &[]);
            let history = CountedHistory::new(history, &Arc::default());
            let open = EngineChain::new(
                &session,
                &mut memory,
                history,
                own.clone(),
                &[],
                Test::Coupled,
            );
            let (_, _, cost) = remote.resolve(open, limit).await.expect("an engine");
            let told = if rounds == 0 { found } else { 0 };
            assert_eq!(
                cost.step.reused_tokens, told,
                "{shared} shared, round {rounds}"
            );
        }
    }
}
