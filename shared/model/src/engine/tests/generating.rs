//! A task that generates: blocks of right and wrong drafts, and trees of them, accepted by coupling.

use std::sync::mpsc::Sender;

use speculation::{TokenId, coupled::choice, noise::Noise};

use super::super::*;
use crate::{Checkpoint, Model, ModelConfig, WeightFormat};

/// Size of the vocabulary.
pub(super) const VOCAB: usize = 64;

/// A small random model with a context of 256 tokens; every second layer sees `window`.
pub(super) fn small_model(window: Option<usize>) -> Model {
    small_checkpoint(window).load(WeightFormat::Q8_0).unwrap()
}

/// The same without windows, on candle's CPU device.
#[cfg(feature = "device")]
pub(super) fn small_model_on_a_device() -> Model {
    use crate::computation::{Computation, ComputeDevice, NumberFormat};
    let computation = Computation::Device(ComputeDevice::Cpu, NumberFormat::F32);
    small_checkpoint(None).load(computation).unwrap()
}

fn small_checkpoint(window: Option<usize>) -> Checkpoint {
    let config = ModelConfig {
        vocab_size: VOCAB,
        hidden_size: 32,
        intermediate_size: 48,
        layers: 2,
        heads: 2,
        kv_heads: 1,
        head_dim: 16,
        attention_scale: 0.25,
        context_len: 256,
        windowed: vec![window.is_some(), false],
        window,
        ..ModelConfig::llama()
    };
    Checkpoint::random(config, 3).unwrap()
}

/// What is generated: a prompt, and how its tokens are chosen.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) prompt: Vec<TokenId>,
    pub(super) output_len: usize,
    pub(super) temperature: f32,
    pub(super) seed: u64,
}

/// Generates the tokens of a request from `output` on. Drafts are taken from `hint`, some of them changed.
pub(super) struct Generate {
    request: Request,
    hint: Vec<TokenId>,
    output: Vec<TokenId>,
    /// Length of the output at which the task is done.
    until: usize,
    tokens: Vec<TokenId>,
    parents: Vec<Option<u32>>,
    round: usize,
    answer: Sender<Result<Vec<TokenId>, TaskError>>,
}

impl Generate {
    pub(super) fn new(
        request: &Request,
        hint: &[TokenId],
        output: Vec<TokenId>,
        until: usize,
        answer: Sender<Result<Vec<TokenId>, TaskError>>,
    ) -> Self {
        let mut task = Self {
            request: request.clone(),
            hint: hint.to_vec(),
            output,
            until,
            tokens: Vec::new(),
            parents: Vec::new(),
            round: 0,
            answer,
        };
        task.draft();
        task
    }

    /// Prompt and output.
    fn context_len(&self) -> usize {
        self.request.prompt.len() + self.output.len()
    }

    /// Sets what is forwarded next: one token, a chain, or a tree, in turn.
    fn draft(&mut self) {
        self.tokens = [&self.request.prompt[..], &self.output].concat();
        self.parents.clear();
        let at = self.output.len();
        let next = self.hint.get(at..).unwrap_or_default();
        let wrong = |token: &TokenId| (token + 1) % VOCAB as TokenId;
        match (self.round % 3, next) {
            (1, [a, b, c, ..]) => {
                let last = if self.round.is_multiple_of(2) {
                    *c
                } else {
                    wrong(c)
                };
                self.tokens.extend([*a, *b, last]);
            }
            (2, [a, b, ..]) => {
                self.tokens.extend([wrong(a), *a, wrong(b), *b, *b]);
                self.parents = vec![None, None, Some(1), Some(0), Some(1)];
            }
            _ => {}
        }
        self.round += 1;
    }

    fn choose(&self, logits: &[f32], position: usize) -> TokenId {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let probs: Vec<f32> = if self.request.temperature == 0.0 {
            logits.iter().map(|l| f32::from(*l == largest)).collect()
        } else {
            let weight = |l: &f32| ((l - largest) / self.request.temperature).exp();
            logits.iter().map(weight).collect()
        };
        choice(&probs, &Noise::new(self.request.seed, 0), position as u32)
    }

    /// Takes drafts as long as they are what the model chooses, and its choice after them.
    fn accept(&mut self, rows: &StepRows<'_>) {
        let drafts = self.tokens[self.context_len()..].to_vec();
        let mut row = 0;
        loop {
            let token = self.choose(rows.row(row), self.output.len());
            self.output.push(token);
            let at = row.checked_sub(1).map(|node| node as u32);
            let is_child = |node: &usize| {
                if self.parents.is_empty() {
                    *node == row
                } else {
                    self.parents[*node] == at
                }
            };
            let mut nodes = (0..drafts.len()).filter(is_child);
            match nodes.find(|&node| drafts[node] == token) {
                Some(node) if self.output.len() < self.until => {
                    row = node + 1;
                }
                _ => return,
            }
        }
    }
}

impl Task for Generate {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.context_len() - 1
    }

    fn parents(&self) -> &[Option<u32>] {
        &self.parents
    }

    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress {
        self.accept(&rows);
        if self.output.len() >= self.until {
            let _closed = self.answer.send(Ok(self.output.clone()));
            return TaskProgress::Done;
        }
        self.draft();
        TaskProgress::Continue
    }

    fn fail(self: Box<Self>, error: TaskError) {
        let _closed = self.answer.send(Err(error));
    }
}
