//! No more sequences than the model holds: running ones, idle ones and kept prefixes together.

use std::sync::atomic::AtomicUsize;

use speculation::{
    TokenId,
    ports::{Caps, ModelShape},
};

use super::*;

const MOST: usize = 3;

/// A model whose caches are counted as long as they hold tokens. Its rows are the last token.
#[derive(Clone, Default)]
struct Few {
    held: Arc<AtomicUsize>,
    /// Most caches that held tokens after a forward.
    most: Arc<AtomicUsize>,
}

struct FewCache {
    tokens: Vec<TokenId>,
    /// Counted where there are tokens.
    held: Arc<AtomicUsize>,
}

impl FewCache {
    fn new(held: &Arc<AtomicUsize>) -> Self {
        Self {
            tokens: Vec::new(),
            held: held.clone(),
        }
    }

    fn set(&mut self, tokens: Vec<TokenId>) {
        match (self.tokens.is_empty(), tokens.is_empty()) {
            (true, false) => self.held.fetch_add(1, Ordering::SeqCst),
            (false, true) => self.held.fetch_sub(1, Ordering::SeqCst),
            _ => 0,
        };
        self.tokens = tokens;
    }
}

impl Drop for FewCache {
    fn drop(&mut self) {
        self.set(Vec::new());
    }
}

impl KvCache for FewCache {
    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn truncate(&mut self, len: usize) {
        let mut tokens = self.tokens.clone();
        tokens.truncate(len);
        self.set(tokens);
    }

    fn share(&self, len: usize) -> Option<Self> {
        let mut shared = Self::new(&self.held);
        shared.set(self.tokens[..len.min(self.tokens.len())].to_vec());
        (!shared.is_empty()).then_some(shared)
    }
}

impl LanguageModel for Few {
    type Cache = FewCache;
    type Error = std::fmt::Error;

    fn shape(&self) -> ModelShape {
        ModelShape {
            vocab_size: 10,
            hidden_size: 0,
            context_len: 40,
            source_len: 0,
        }
    }

    fn caps(&self) -> Caps {
        Caps {
            max_sequences: MOST,
            ..Caps::ALL
        }
    }

    fn new_cache(&self) -> FewCache {
        FewCache::new(&self.held)
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, FewCache>],
        rows: &mut Rows,
    ) -> Result<(), std::fmt::Error> {
        rows.vocab_size = 10;
        rows.logits.clear();
        for segment in batch {
            let tokens = [&segment.cache.tokens[..], segment.tokens].concat();
            segment.cache.set(tokens);
            for &token in &segment.tokens[segment.scored_from..] {
                rows.logits.extend([token as f32; 10]);
            }
        }
        let held = self.held.load(Ordering::SeqCst);
        self.most.fetch_max(held, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn running_and_idle_sequences_and_prefixes_are_no_more_than_the_model_holds() {
    let few = Few::default();
    let config = EngineConfig {
        prefix_sharing: true,
        prefill_time: None,
        ..EngineConfig::default()
    };
    let (handle, thread) = spawn(few.clone(), config, "few").unwrap();
    let rounds = 4;
    for round in 0..rounds {
        let reports: Vec<_> = (0..5)
            .map(|own| {
                let slot = handle.new_slot_of("tenant");
                let (mut task, report) = Score::rows(&[own, round, 3, 4]);
                task.extra = 3;
                slot.try_submit(task).unwrap();
                (slot, report)
            })
            .collect();
        for (_, report) in &reports {
            report.recv_timeout(PATIENCE).unwrap().unwrap();
        }
    }
    drop(handle);
    thread.join().unwrap();
    assert_eq!(few.most.load(Ordering::SeqCst), MOST);
    assert_eq!(few.held.load(Ordering::SeqCst), 0);
}
