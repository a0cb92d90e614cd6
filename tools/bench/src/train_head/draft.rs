//! The draft model, run in this process: its distributions, and its states at tokens it might have drafted.

use std::time::Instant;

use anyhow::Context;
use model::Model;
use model::source::ServedModel;
use speculation::TokenId;
use speculation::history::History;
use speculation::pipeline::Pipeline;
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};
use speculation::sampling::SamplingParams;

/// The draft model.
pub(super) struct DraftModel {
    pub(super) served: ServedModel<Model>,
    rows: Rows,
}

/// A sequence the draft model holds.
type Cache = <Model as LanguageModel>::Cache;

impl DraftModel {
    pub(super) fn new(served: ServedModel<Model>) -> Self {
        let rows = Rows {
            want_hidden: true,
            ..Rows::default()
        };
        Self { served, rows }
    }

    /// Length of a state.
    pub(super) fn hidden_size(&self) -> usize {
        self.served.model.shape().hidden_size
    }

    /// The sampling distributions before each token of `response`, (positions) each (vocab).
    pub(super) fn distributions(
        &mut self,
        prompt: &[TokenId],
        response: &[TokenId],
        params: &SamplingParams,
    ) -> anyhow::Result<Vec<Vec<f32>>> {
        let mut cache = self.served.model.new_cache();
        let (_last, context) = response.split_last().context("an empty response")?;
        let tokens = [prompt, context].concat();
        self.forward(&mut cache, &tokens, prompt.len() - 1)?;
        let mut pipeline = Pipeline::new(params.clone());
        let mut history = History::new(params, prompt, &[]);
        let vocab_size = self.served.outline.vocab_size as usize;
        (response.iter().enumerate())
            .map(|(position, &token)| {
                let mut probs = self.rows.row(position)[..vocab_size].to_vec();
                pipeline.probs(&mut probs, &history, position as u32)?;
                history.push(token);
                Ok(probs)
            })
            .collect()
    }

    /// The states at each token of `tokens`, after the prompt and one another, (positions, hidden).
    pub(super) fn states(
        &mut self,
        prompt: &[TokenId],
        tokens: &[TokenId],
    ) -> anyhow::Result<Vec<f32>> {
        let mut cache = self.served.model.new_cache();
        self.forward(&mut cache, &[prompt, tokens].concat(), prompt.len())?;
        Ok(self.rows.hidden.clone())
    }

    /// The states at each token of `drafted`, each after the prompt and the tokens of `response` before
    /// its position, (positions, hidden): what a drafter sees while all it drafts is accepted.
    pub(super) fn branched_states(
        &mut self,
        prompt: &[TokenId],
        response: &[TokenId],
        drafted: &[TokenId],
    ) -> anyhow::Result<Vec<f32>> {
        let mut cache = self.served.model.new_cache();
        self.forward(&mut cache, prompt, prompt.len())?;
        let mut states = Vec::with_capacity(drafted.len() * self.hidden_size());
        for (position, (own, draft)) in response.iter().zip(drafted).enumerate() {
            self.forward(&mut cache, &[*draft], 0)?;
            states.extend_from_slice(&self.rows.hidden);
            if own != draft {
                cache.truncate(prompt.len() + position);
                self.forward(&mut cache, &[*own], 1)?;
            }
        }
        Ok(states)
    }

    /// Milliseconds of a forward of one token, the median of some.
    pub(super) fn forward_ms(&mut self, tokens: &[TokenId]) -> anyhow::Result<f64> {
        let mut cache = self.served.model.new_cache();
        let mut times = Vec::with_capacity(tokens.len());
        for token in tokens {
            let began = Instant::now();
            self.forward(&mut cache, &[*token], 0)?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied().unwrap_or_default())
    }

    fn forward(
        &mut self,
        cache: &mut Cache,
        tokens: &[TokenId],
        scored_from: usize,
    ) -> anyhow::Result<()> {
        let segment = Segment {
            cache,
            tokens,
            parents: &[],
            scored_from,
        };
        (self.served.model.forward(&mut [segment], &mut self.rows)).context("the draft model")
    }
}
