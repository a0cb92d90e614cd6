//! Budgets and evictions, on a small random model.

use std::sync::mpsc::channel;

use speculation::TokenId;

use super::generating::{Generate, Request, VOCAB, small_model};
use super::toy::{PATIENCE, bound};
use super::*;

pub(super) fn prompt(len: usize, seed: usize) -> Vec<TokenId> {
    (0..len)
        .map(|i| ((i * i + 7 * i * seed + 13 * seed) % VOCAB) as TokenId)
        .collect()
}

fn requests(count: usize) -> Vec<Request> {
    (0..count)
        .map(|i| Request {
            prompt: prompt(20 + 7 * (i % 11), i),
            output_len: 24 + i % 5,
            temperature: (i % 2) as f32,
            seed: i as u64,
        })
        .collect()
}

pub(super) struct Engine {
    pub(super) handle: EngineHandle,
    thread: JoinHandle<()>,
    /// Most pages seen in use.
    pub(super) most: usize,
}

impl Engine {
    pub(super) fn new(window: Option<usize>, change: impl FnOnce(&mut EngineConfig)) -> Self {
        let mut config = EngineConfig {
            prefill_chunk: bound(32),
            prefill_time: None,
            ..EngineConfig::default()
        };
        change(&mut config);
        let (handle, thread) = spawn(small_model(window), config, "small").unwrap();
        Self {
            handle,
            thread,
            most: 0,
        }
    }

    /// Waits for an answer, and looks at the memory meanwhile.
    fn wait<T>(&mut self, answer: &Receiver<T>) -> T {
        let began = std::time::Instant::now();
        loop {
            self.most = self.most.max(self.handle.stats().pages);
            match answer.recv_timeout(Duration::from_micros(200)) {
                Ok(answer) => return answer,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    assert!(began.elapsed() < 6 * PATIENCE, "no answer");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// All outputs, half of each by one task and half by the next, all sessions at once.
    fn generate(&mut self, requests: &[Request], hints: &[Vec<TokenId>]) -> Vec<Vec<TokenId>> {
        let slots: Vec<EngineSlot> = requests
            .iter()
            .map(|_| self.handle.new_slot_of(""))
            .collect();
        let mut outputs = vec![Vec::new(); requests.len()];
        for part in [2, 1] {
            let submitted: Vec<_> = (requests.iter().zip(hints).zip(&slots).zip(&outputs))
                .map(|(((request, hint), slot), output)| {
                    let (answer, receiver) = channel();
                    let until = request.output_len / part;
                    let task = Generate::new(request, hint, output.clone(), until, answer);
                    slot.try_submit(task).unwrap();
                    receiver
                })
                .collect();
            for (output, answer) in outputs.iter_mut().zip(&submitted) {
                *output = self.wait(answer).unwrap();
            }
        }
        outputs
    }

    /// Waits until the gauges say that nothing is held.
    pub(super) fn is_empty_at_last(&self) {
        for _ in 0..2000 {
            let stats = self.handle.stats();
            if stats.running + stats.queued + stats.sequences + stats.pages == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{:?}", self.handle.stats());
    }
}

/// The outputs, one session after the other, one token at a time.
fn alone(window: Option<usize>, requests: &[Request]) -> Vec<Vec<TokenId>> {
    let mut engine = Engine::new(window, |_| {});
    requests
        .iter()
        .map(|request| {
            let outputs = engine.generate(std::slice::from_ref(request), &[Vec::new()]);
            outputs.into_iter().next().unwrap()
        })
        .collect()
}

#[test]
fn a_small_budget_changes_no_token_and_leaks_nothing() {
    let requests = requests(64);
    for window in [None, Some(24)] {
        let expected = alone(window, &requests);
        let mut generous = Engine::new(window, |_| {});
        assert!(generous.generate(&requests, &expected) == expected);
        let memory = generous.handle.stats();
        assert_eq!((memory.evictions, memory.reprefilled_tokens), (0, 0));
        generous.is_empty_at_last();

        // Room for four pages of two layers: a session needs up to two of each.
        let mut tight = Engine::new(window, |config| config.kv_tokens = 4 * 64);
        assert!(tight.generate(&requests, &expected) == expected);
        let memory = tight.handle.stats();
        assert_eq!(memory.budget_tokens, 256);
        assert!((5..=8).contains(&tight.most), "{} of 8 pages", tight.most);
        assert!(memory.evictions > 0 && memory.reprefilled_tokens > 0);
        tight.is_empty_at_last();
        drop(tight.handle);
        tight.thread.join().unwrap();
    }
}

#[test]
fn a_sequence_that_fits_nowhere_is_refused_with_budget_and_need() {
    let mut engine = Engine::new(None, |config| config.kv_tokens = 150);
    // Whole pages count.
    assert_eq!(engine.handle.longest_sequence(), 128);
    // The nodes of a tree stand side by side.
    let branching = Engine::new(None, |config| {
        config.kv_tokens = 150;
        config.tree_tokens = 20;
    });
    assert_eq!(branching.handle.longest_sequence(), 108);
    // Where nobody says how much, every sequence may be as long as the model holds, with a tree.
    let generous = Engine::new(None, |_| {}).handle.longest_sequence();
    let branching = Engine::new(None, |config| {
        config.max_cached_sequences = bound(1);
        config.tree_tokens = 20;
    });
    assert_eq!(branching.handle.longest_sequence(), generous);
    let request = |len| Request {
        prompt: prompt(len, 1),
        output_len: 1,
        temperature: 0.0,
        seed: 0,
    };
    let mut ask = |len| {
        let (answer, receiver) = channel();
        let task = Generate::new(&request(len), &[], Vec::new(), 1, answer);
        let slot = engine.handle.new_slot_of("");
        slot.try_submit(task).unwrap();
        engine.wait(&receiver)
    };
    assert_eq!(ask(128).unwrap().len(), 1);
    assert_eq!(
        ask(129).unwrap_err().to_string(),
        "the sequence takes the memory of 192 tokens, the engine's kv_tokens is 150: raise it"
    );
    assert_eq!(ask(20).unwrap().len(), 1);
    let config = EngineConfig {
        kv_tokens: 63,
        prefill_time: None,
        ..EngineConfig::default()
    };
    assert_eq!(
        spawn(small_model(None), config, "small")
            .unwrap_err()
            .to_string(),
        "kv_tokens is 63, and one request needs at least 64: a token and a draft tree of 0 (max_draft_tokens), in \
         whole pages; 0 is a share of the free memory"
    );
}

/// Layers with a window cannot go back far; the engine forwards what they forgot again.
#[test]
fn going_back_behind_a_window_changes_no_token() {
    let request = Request {
        prompt: prompt(200, 5),
        output_len: 8,
        temperature: 1.0,
        seed: 4,
    };
    let shorter = Request {
        prompt: prompt(200, 5)[..40].to_vec(),
        ..request.clone()
    };
    let expected = alone(Some(8), &[request.clone(), shorter.clone()]);
    let mut engine = Engine::new(Some(8), |config| config.prefill_chunk = bound(16));
    let slot = engine.handle.new_slot_of("");
    for (request, expected) in [(&request, &expected[0]), (&shorter, &expected[1])] {
        let (answer, receiver) = channel();
        let task = Generate::new(request, &[], Vec::new(), 8, answer);
        slot.try_submit(task).unwrap();
        assert_eq!(engine.wait(&receiver).unwrap(), *expected);
    }
    let memory = engine.handle.stats();
    assert_eq!((memory.reprefilled_tokens, memory.evictions), (39, 0));
}
