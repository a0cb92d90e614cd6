//! What is computed once for sequences that begin alike, on a small random model: every row has the bits of a fresh forward.

use speculation::TokenId;

use super::generating::VOCAB;
use super::memory::{Engine, prompt};
use super::toy::{PATIENCE, Report, bound};
use super::trees::next;
use super::*;

/// An engine in which every sequence is computed for itself.
fn fresh(window: Option<usize>) -> Engine {
    Engine::new(window, |config| config.prefix_sharing = false)
}

/// The rows of a task, and how many tokens were forwarded for them.
fn score(engine: &Engine, tenant: &str, tokens: &[TokenId]) -> (Vec<f32>, usize) {
    let (mut task, receiver) = Score::rows(tokens);
    task.scored_from = tokens.len() - 3;
    let slot = engine.handle.new_slot_of(tenant);
    slot.try_submit(task).unwrap();
    next(&receiver)
}

#[test]
fn equal_beginnings_are_shared_within_a_tenant_only() {
    for window in [None, Some(24)] {
        let fresh = fresh(window);
        let engine = Engine::new(window, |_| {});
        let first = prompt(240, 2);
        let expected = score(&fresh, "", &first);
        assert_eq!(expected.1, 240);
        assert_eq!(score(&engine, "ours", &first), expected);
        // Three whole pages; of the rest each sequence has its own.
        assert!(score(&engine, "ours", &first) == (expected.0.clone(), 48));
        assert!(score(&engine, "theirs", &first) == expected);
        assert!(score(&engine, "", &first) == expected);
        assert!(score(&engine, "", &first) == expected);
        assert_eq!(engine.handle.stats().shared_tokens, 192);
        // Another end, within the second page.
        let mut other = first.clone();
        other[100] = (other[100] + 1) % VOCAB as TokenId;
        let expected = score(&fresh, "", &other);
        let found = score(&engine, "ours", &other);
        assert!(found.0 == expected.0);
        // A layer with a window holds nothing of the first page alone.
        assert_eq!(found.1, if window.is_some() { 240 } else { 176 });
        // What ends in a shared page writes to a copy.
        for len in [128, 127, 66, 65] {
            let expected = score(&fresh, "", &first[..len]);
            assert!(
                score(&engine, "ours", &first[..len]).0 == expected.0,
                "{len}"
            );
            let expected = score(&fresh, "", &first);
            assert!(
                score(&engine, "ours", &first).0 == expected.0,
                "after {len}"
            );
        }
    }
}

#[test]
fn nothing_is_shared_where_that_is_switched_off() {
    let engine = fresh(None);
    for _ in 0..2 {
        assert_eq!(score(&engine, "ours", &prompt(150, 2)).1, 150);
    }
    engine.is_empty_at_last();
}

#[test]
fn prefixes_stay_within_the_budget_and_go_first() {
    let mut engine = Engine::new(None, |config| {
        config.kv_tokens = 256;
    });
    for seed in 0..5 {
        assert_eq!(score(&engine, "ours", &prompt(150, seed)).1, 150);
        engine.most = engine.most.max(engine.handle.stats().pages);
    }
    assert!(engine.most <= 8, "{}", engine.most);
    // The last is kept, the first is not.
    assert_eq!(score(&engine, "ours", &prompt(150, 4)).1, 22);
    assert_eq!(score(&engine, "ours", &prompt(150, 0)).1, 150);
    assert_eq!(engine.handle.stats().evictions, 0);
}

/// A prompt of so many tokens that begins like all others for 200 of them.
fn alike(own: usize) -> Vec<TokenId> {
    let mut tokens = prompt(240, 2);
    tokens[200] = own as TokenId;
    tokens
}

fn submit(engine: &Engine, tokens: &[TokenId]) -> (EngineSlot, Arc<AtomicBool>, Receiver<Report>) {
    let (mut task, receiver) = Score::rows(tokens);
    task.scored_from = tokens.len() - 3;
    let cancelled = Arc::clone(&task.cancelled);
    let slot = engine.handle.new_slot_of("ours");
    slot.try_submit(task).unwrap();
    (slot, cancelled, receiver)
}

/// Whether they come one after the other or all at once, and whether a sequence that holds the beginning goes on or not.
#[test]
fn what_several_begin_with_is_read_once() {
    for window in [None, Some(24)] {
        let fresh = fresh(window);
        let expected: Vec<_> = (0..8).map(|own| score(&fresh, "", &alike(own)).0).collect();
        for chunk in [7, 64] {
            let engine = Engine::new(window, |config| config.prefill_chunk = bound(chunk));
            let running: Vec<_> = (0..8).map(|own| submit(&engine, &alike(own))).collect();
            let mut forwarded = 0;
            for ((_slot, _, receiver), expected) in running.iter().zip(&expected) {
                let (rows, timing) = receiver.recv_timeout(PATIENCE).unwrap().unwrap();
                assert!(rows == *expected, "{window:?}, {chunk}");
                assert_eq!(timing.forwarded_tokens + timing.reused_tokens, 240);
                forwarded += timing.forwarded_tokens;
            }
            assert_eq!(forwarded, 240 + 7 * 48, "{window:?}, {chunk}");
            assert_eq!(engine.handle.stats().shared_tokens, 7 * 192);
        }
    }
}

/// The younger reads it then itself, or has it from what the other had read.
#[test]
fn whoever_is_waited_for_may_go_away() {
    let fresh = fresh(None);
    let expected = score(&fresh, "", &alike(1)).0;
    for pause in [0, 1, 2, 4] {
        let engine = Engine::new(None, |config| config.prefill_chunk = bound(4));
        let (slot, cancelled, _) = submit(&engine, &alike(0));
        let (_kept, _, receiver) = submit(&engine, &alike(1));
        std::thread::sleep(Duration::from_millis(pause));
        cancelled.store(true, Ordering::Relaxed);
        drop(slot);
        let (rows, _) = receiver.recv_timeout(PATIENCE).unwrap().unwrap();
        assert!(rows == expected, "after {pause} ms");
    }
}

/// What one begins with stays for as long as it goes on, however little memory there is for others.
#[test]
fn a_beginning_in_use_is_never_given_up() {
    let fresh = fresh(None);
    let engine = Engine::new(None, |config| config.kv_tokens = 512);
    let expected: Vec<_> = (0..12)
        .map(|own| score(&fresh, "", &alike(own)).0)
        .collect();
    let running: Vec<_> = (0..12).map(|own| submit(&engine, &alike(own))).collect();
    for ((_slot, _, receiver), expected) in running.iter().zip(&expected) {
        let (rows, _) = receiver.recv_timeout(PATIENCE).unwrap().unwrap();
        assert!(rows == *expected);
    }
}

#[test]
fn one_other_token_at_a_border_of_pages_is_another_beginning() {
    let fresh = fresh(None);
    let engine = Engine::new(None, |_| {});
    let first = prompt(240, 2);
    score(&engine, "ours", &first);
    for at in [0, 63, 64, 127, 128, 191, 192] {
        let mut other = first.clone();
        other[at] = (other[at] + 1) % VOCAB as TokenId;
        let found = score(&engine, "ours", &other);
        assert!(found.0 == score(&fresh, "", &other).0, "{at}");
        assert_eq!(found.1, 240 - at / 64 * 64, "{at}");
    }
}

/// However many distinct beginnings there are.
#[test]
fn no_more_beginnings_are_kept_than_sequences_may_be() {
    let engine = Engine::new(None, |config| config.max_cached_sequences = bound(4));
    for seed in 0..64 {
        score(&engine, "ours", &prompt(70, seed));
        let held = engine.handle.stats().kv_tokens;
        // A page of each, and the two of one that ends.
        assert!(held <= (4 + 2) * 64, "{seed}: {held}");
    }
}

/// The nodes of a tree stand side by side, though their tokens are those of another text; also where that is being read.
#[test]
fn a_tree_is_no_beginning() {
    let first = prompt(240, 2);
    let branching = |engine: &Engine| {
        let (mut task, receiver) = Score::rows(&first[..200]);
        // All are children of the last of 130 tokens; of the last node alone the row is wanted.
        task.parents = vec![None; 70];
        task.scored_from = 199;
        let slot = engine.handle.new_slot_of("ours");
        slot.try_submit(task).unwrap();
        next(&receiver)
    };
    let (expected, _) = branching(&fresh(None));
    let engine = Engine::new(None, |config| config.prefill_chunk = bound(2));
    let (_slot, _, _reading) = submit(&engine, &first);
    for _ in 0..2 {
        let (rows, forwarded) = branching(&engine);
        assert!(rows == expected);
        assert_eq!(forwarded, 200 - 128);
    }
}
