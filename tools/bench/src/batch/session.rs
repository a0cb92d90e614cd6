//! Sessions that decode on one engine.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use model::Model;
use model::engine::{
    self, EngineConfig, EngineError, EngineHandle, Progress, SlotId, StepRows, Task,
};
use speculation::TokenId;
use speculation::ports::LanguageModel;
use speculation::real::argmax;

/// An engine, and sessions that each hold a context.
pub(super) struct Sessions {
    engine: EngineHandle,
    prompts: Vec<Vec<TokenId>>,
}

impl Sessions {
    /// Starts an engine and fills the sequences of `most` sessions with `context` tokens each.
    ///
    /// # Errors
    /// If the engine does not start, or fails.
    pub(super) fn start(model: Model, most: NonZeroUsize, context: usize) -> anyhow::Result<Self> {
        let vocab = model.shape().vocab_size;
        let prompt = |session: usize| -> Vec<TokenId> {
            let token = |i: usize| ((i * i * 31 + i * 7 + session * 101 + 3) % vocab) as TokenId;
            (0..context).map(token).collect()
        };
        let config = EngineConfig {
            max_batch: most,
            max_queue: most,
            max_cached_sequences: most,
            ..EngineConfig::default()
        };
        // The thread ends with the last handle.
        let (engine, _thread) = engine::spawn(model, config, "bench-engine")?;
        let sessions = Self {
            engine,
            prompts: (0..most.get()).map(prompt).collect(),
        };
        sessions.decode(most.get(), 1)?;
        Ok(sessions)
    }

    /// How long it takes until the first `count` sessions, decoding together, have `tokens` new tokens
    /// each. The next call begins where this one began.
    ///
    /// # Errors
    /// If the engine fails.
    pub(super) fn decode(&self, count: usize, tokens: usize) -> anyhow::Result<Duration> {
        let (done, ended) = channel();
        let started = Instant::now();
        for (slot, prompt) in self.prompts[..count].iter().enumerate() {
            let task = Decode {
                tokens: prompt.clone(),
                left: tokens,
                done: done.clone(),
            };
            self.engine.try_submit(SlotId(slot as u64), task)?;
        }
        drop(done);
        let ended: Receiver<Result<(), EngineError>> = ended;
        for _ in 0..count {
            ended.recv().context("the engine stopped")??;
        }
        Ok(started.elapsed())
    }
}

/// Takes the most likely token, so many times.
struct Decode {
    tokens: Vec<TokenId>,
    left: usize,
    done: Sender<Result<(), EngineError>>,
}

impl Task for Decode {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn step(&mut self, rows: StepRows<'_>) -> Progress {
        self.tokens.push(argmax(rows.row(0)) as TokenId);
        self.left -= 1;
        if self.left > 0 {
            return Progress::Continue;
        }
        // Nobody waits if another session failed.
        let _ = self.done.send(Ok(()));
        Progress::Done
    }

    fn fail(self: Box<Self>, error: EngineError) {
        let _ = self.done.send(Err(error));
    }
}
