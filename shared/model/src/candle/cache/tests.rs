//! What a sequence is computed from, by a body that notes what it is given.

use parking_lot::Mutex;

use super::*;

/// How many tokens each forward had, of a sequence and all copies of it.
type Forwards = Arc<Mutex<Vec<usize>>>;

#[derive(Clone, Debug, Default)]
struct Noting {
    forwards: Forwards,
    held: usize,
}

impl Body for Noting {
    fn append(
        &mut self,
        tokens: &[TokenId],
        at: usize,
        scored: usize,
        device: &Device,
    ) -> Result<Tensor> {
        assert_eq!(at, self.held);
        self.held += tokens.len();
        self.forwards.lock().push(tokens.len());
        Tensor::zeros((scored.max(1), 1), candle_core::DType::F32, device)
    }

    fn copy(&self) -> Box<dyn Body> {
        Box::new(self.clone())
    }
}

/// An empty sequence, and what is noted of it.
fn sequence(returns: Returns, keeping: Keeping) -> (CandleCache, Forwards) {
    let body = Noting::default();
    let forwards = Arc::clone(&body.forwards);
    let cache = CandleCache::new(Arc::new(body), (returns, keeping), Arc::default());
    (cache, forwards)
}

/// Appends `count` tokens; the row of the last is wanted if `scored` says so.
fn append(cache: &mut CandleCache, count: usize, scored: bool) {
    let row = cache.append(&vec![1; count], usize::from(scored), &Device::Cpu);
    assert_eq!(row.unwrap().is_some(), scored);
}

#[test]
fn a_prompt_in_parts_is_read_in_one_go_where_tokens_come_one_by_one_later() {
    let kinds = [
        (Returns::LastRow, Keeping::ANEW_ONE_BY_ONE, &[27][..]),
        (Returns::HiddenStates, Keeping::ANEW, &[16, 10, 1][..]),
    ];
    for (returns, keeping, expected) in kinds {
        let (mut cache, forwards) = sequence(returns, keeping);
        append(&mut cache, 16, false);
        append(&mut cache, 10, false);
        assert_eq!(cache.len(), 26);
        append(&mut cache, 1, true);
        assert_eq!(*forwards.lock(), expected);
    }
}

/// Wherever a block of 5 draft tokens ends, what stays of it is not computed again: the last of them was never forwarded.
#[test]
fn what_stays_of_a_short_draft_is_not_read_again_where_tokens_come_one_by_one() {
    for before in [0, 40] {
        for kept in 0..5 {
            let (mut cache, forwards) = sequence(Returns::LastRow, Keeping::ANEW_ONE_BY_ONE);
            append(&mut cache, 30, true);
            for _ in 0..before {
                append(&mut cache, 1, true);
            }
            append(&mut cache, 2, true);
            let held = cache.len();
            for _ in 0..4 {
                append(&mut cache, 1, true);
            }
            cache.truncate(held + kept);
            forwards.lock().clear();
            append(&mut cache, 1, true);
            assert_eq!(*forwards.lock(), [1], "{kept} kept, {before} before");
        }
    }
}

/// Further back there is still something to go on from.
#[test]
fn long_drafts_are_forgotten_without_the_prompt() {
    for keeping in [Keeping::ANEW, Keeping::ANEW_ONE_BY_ONE] {
        let (mut cache, forwards) = sequence(Returns::LastRow, keeping);
        append(&mut cache, 30, true);
        for len in 31..90 {
            append(&mut cache, 1, true);
            let mut held = cache.copies.iter().map(|(held, _)| *held);
            assert!(held.any(|held| held + REACH <= len || held == 0), "{len}");
            assert!(cache.copies.len() <= keeping.copies);
        }
        cache.truncate(90 - 1 - REACH);
        assert_eq!(cache.len(), 90 - 1 - REACH);
        forwards.lock().clear();
        append(&mut cache, 1, true);
        let again = forwards.lock()[0];
        assert!(again < 30, "{again}");
    }
}
