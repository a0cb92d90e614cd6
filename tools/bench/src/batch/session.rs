//! Sessions that decode on one engine.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use model::Model;
use model::engine::{
    self, EngineConfig, EngineHandle, SlotId, StepRows, Task, TaskError, TaskProgress,
};
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::history::History;
use speculation::noise::Noise;
use speculation::pipeline::Pipeline;
use speculation::ports::LanguageModel;
use speculation::sampling::SamplingParams;

/// An engine, and sessions that each hold a context.
pub(crate) struct Sessions {
    engine: EngineHandle,
    prompts: Vec<Vec<TokenId>>,
    sampling: Arc<SamplingParams>,
}

impl Sessions {
    /// Starts an engine and fills the sequences of `most` sessions with `context` tokens each; their next tokens are
    /// drawn as `sampling` says.
    ///
    /// # Errors
    /// If the engine does not start, or fails.
    pub(crate) fn start(
        model: Model,
        most: NonZeroUsize,
        context: usize,
        sampling: SamplingParams,
    ) -> anyhow::Result<Self> {
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
            sampling: Arc::new(sampling),
        };
        sessions.decode(most.get(), 1)?;
        Ok(sessions)
    }

    /// How long it takes until the first `count` sessions, decoding together, have `tokens` new tokens
    /// each. The next call begins where this one began.
    ///
    /// # Errors
    /// If the engine fails.
    pub(crate) fn decode(&self, count: usize, tokens: usize) -> anyhow::Result<Duration> {
        let (done, ended) = channel();
        let started = Instant::now();
        for (slot, prompt) in self.prompts[..count].iter().enumerate() {
            let task = Decode {
                pipeline: Pipeline::new(Arc::clone(&self.sampling)),
                history: History::new(&self.sampling, prompt, &[]),
                noise: Noise::new(slot as u64, 0),
                tokens: prompt.clone(),
                left: tokens,
                done: done.clone(),
            };
            self.engine.try_submit(SlotId(slot as u64), task)?;
        }
        drop(done);
        let ended: Receiver<anyhow::Result<()>> = ended;
        for _ in 0..count {
            ended.recv().context("the engine stopped")??;
        }
        Ok(started.elapsed())
    }
}

/// Draws a token, so many times, as a verifier does for a target alone.
struct Decode {
    pipeline: Pipeline,
    history: History,
    noise: Noise,
    tokens: Vec<TokenId>,
    left: usize,
    done: Sender<anyhow::Result<()>>,
}

impl Task for Decode {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> TaskProgress {
        let (row, position) = (rows.row_mut(0), self.tokens.len() as u32);
        let probs = self.pipeline.probs(row, &self.history, position);
        let drawn = probs.map(|()| choice(row, &self.noise, position));
        let ended = match drawn {
            Ok(token) => {
                self.history.push(token);
                self.tokens.push(token);
                self.left -= 1;
                (self.left == 0).then_some(Ok(()))
            }
            Err(error) => Some(Err(error.into())),
        };
        let Some(ended) = ended else {
            return TaskProgress::Continue;
        };
        // Nobody waits if another session failed.
        let _ = self.done.send(ended);
        TaskProgress::Done
    }

    fn fail(self: Box<Self>, error: TaskError) {
        let _ = self.done.send(Err(error.into()));
    }
}
