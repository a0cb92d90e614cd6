//! With drafts the same tasks are in the same forwards as without.

use super::super::generating::small_model;
use super::*;

/// A task: its first tokens, each `token`, and how many it decodes after them.
#[derive(Clone, Copy)]
struct Asked {
    token: TokenId,
    prompt: usize,
    extra: usize,
}

const fn asked(token: TokenId, prompt: usize, extra: usize) -> Asked {
    Asked {
        token,
        prompt,
        extra,
    }
}

/// What an engine did.
struct Done {
    forwards: Vec<Tokens>,
    stats: EngineStats,
}

/// Runs the tasks, all of which are there before the second forward; those that offer `drafts` have them refused.
fn run(tasks: &[Asked], offer: Option<&Offer>, change: impl FnOnce(&mut EngineConfig)) -> Done {
    let mut config = EngineConfig {
        prefill_time: None,
        ..EngineConfig::default()
    };
    change(&mut config);
    let model = Recorded::new(small_model(None));
    let forwards = Arc::clone(&model.forwards);
    let (handle, thread) = spawn(model, config, "small").unwrap();
    forwards.lock().unwrap().clear();
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let submitted = (0..).zip(tasks).map(|(slot, asked)| {
        let tokens = vec![asked.token; asked.prompt];
        let (mut task, told) = Stream::new(&tokens, asked.extra, offer.cloned());
        task.gate = Arc::clone(&gate);
        handle.try_submit(SlotId(slot), task).unwrap();
        if slot == 0 {
            // It begins alone, and its step holds the engine up until all have been submitted.
            while handle.stats().queued > 0 {
                thread::yield_now();
            }
        }
        told
    });
    let submitted: Vec<_> = submitted.collect();
    drop(closed);
    for (told, asked) in submitted.iter().zip(tasks) {
        assert_eq!(steps(told).len(), asked.extra + 1);
    }
    let stats = at_rest(&handle);
    drop(handle);
    thread.join().unwrap();
    let forwards = std::mem::take(&mut *forwards.lock().unwrap());
    Done { forwards, stats }
}

fn without_drafts(forwards: &[Tokens]) -> Vec<Tokens> {
    let own = |tokens: &Vec<TokenId>| {
        let own = tokens.iter().filter(|&&token| token != DRAFT);
        own.copied().collect()
    };
    let forwards = forwards.iter();
    forwards
        .map(|tokens| tokens.iter().map(own).collect())
        .collect()
}

/// The drafts of each forward.
fn drafts(forwards: &[Tokens]) -> Vec<usize> {
    let of = |tokens: &Tokens| {
        let all = tokens.iter().flatten();
        all.filter(|&&token| token == DRAFT).count()
    };
    forwards.iter().map(of).collect()
}

/// Checks that drafts change nothing but the length of forwards. Returns how many there were in each forward, and what was
/// forwarded.
fn keeps_order(tasks: &[Asked], change: impl Fn(&mut EngineConfig)) -> (Vec<usize>, Done) {
    let plain = run(tasks, None, &change);
    let offer = Offer::wrong(&[1.0; 40]);
    let streamed = run(tasks, Some(&offer), &change);
    assert_eq!(without_drafts(&streamed.forwards), plain.forwards);
    let count = |stats: EngineStats| (stats.evictions, stats.reprefilled_tokens, stats.forwards);
    assert_eq!(count(streamed.stats), count(plain.stats));
    (drafts(&streamed.forwards), streamed)
}

#[test]
fn a_full_memory_has_room_for_no_draft_and_nobody_makes_any() {
    // Room for three runs of 64 tokens: one for each task, until the oldest grows out of its first.
    let tasks = [asked(1, 60, 20), asked(2, 10, 40), asked(3, 10, 40)];
    let (drafts, done) = keeps_order(&tasks, |config| config.kv_tokens = 3 * 64);
    assert!(done.stats.evictions > 0, "{:?}", done.stats);
    assert!(drafts.iter().sum::<usize>() > 100, "{drafts:?}");
    // The first has 64 tokens, and a draft of its own would take a further run.
    let at_full: Vec<&Tokens> = done.forwards.iter().take(5).collect();
    for tokens in at_full {
        let of_first = tokens.iter().find(|tokens| tokens[0] == 1).unwrap();
        let grown = of_first.iter().filter(|&&token| token == DRAFT).count();
        assert!(grown < 5, "{tokens:?}");
    }
}

#[test]
fn one_sequence_that_fills_the_memory_goes_on_to_its_end() {
    for prompt in [50, 61, 63, 64, 100] {
        let tasks = [asked(1, prompt, 127 - prompt)];
        let (drafts, done) = keeps_order(&tasks, |config| config.kv_tokens = 128);
        assert_eq!(done.stats.evictions, 0);
        assert!(drafts.iter().sum::<usize>() > 0, "{drafts:?}");
    }
}

#[test]
fn idle_sequences_stay_though_drafts_could_use_their_memory() {
    let config = EngineConfig {
        kv_tokens: 2 * 64,
        prefill_time: None,
        ..EngineConfig::default()
    };
    let (handle, thread) = spawn(small_model(None), config, "small").unwrap();
    let submit = |slot, tokens: &[TokenId], extra| {
        let offer = Offer::wrong(&[1.0; 40]);
        let (task, told) = Stream::new(tokens, extra, Some(offer));
        handle.try_submit(SlotId(slot), task).unwrap();
        steps(&told)
    };
    submit(1, &[5; 40], 0);
    // It ends a token before its memory does.
    let decoded = submit(2, &[6; 50], 14);
    assert_eq!(decoded.len(), 15);
    assert!(decoded.iter().any(|(drafts, ..)| !drafts.is_empty()));
    let again = submit(1, &[5; 41], 0);
    let (drafts, _, forwarded) = &again[0];
    assert_eq!(
        (forwarded - drafts.len(), at_rest(&handle).evictions),
        (1, 0)
    );
    drop(handle);
    thread.join().unwrap();
}

#[test]
fn a_full_batch_admits_the_same_tasks() {
    let tasks = [
        asked(1, 3, 9),
        asked(2, 5, 4),
        asked(3, 4, 12),
        asked(4, 2, 7),
        asked(5, 1, 3),
    ];
    let (drafts, _) = keeps_order(&tasks, |config| config.max_batch = bound(2));
    assert!(drafts.iter().sum::<usize>() > 0, "{drafts:?}");
}

#[test]
fn the_tokens_of_a_forward_are_shared_as_without_drafts() {
    let tasks = [
        asked(1, 1, 30),
        asked(2, 2, 20),
        asked(3, 90, 8),
        asked(4, 3, 25),
        asked(5, 40, 4),
    ];
    for most in [3, 4, 7, 16, 64] {
        let (drafts, done) = keeps_order(&tasks, |config| {
            config.max_batch_tokens = bound(most);
            config.prefill_chunk = bound(24);
        });
        assert!(drafts.iter().sum::<usize>() > 0, "{most}: {drafts:?}");
        for (tokens, drafts) in done.forwards.iter().zip(drafts) {
            let all = tokens.iter().map(Vec::len).sum::<usize>();
            assert!(drafts == 0 || all <= most, "{most}: {tokens:?}");
        }
    }
}
