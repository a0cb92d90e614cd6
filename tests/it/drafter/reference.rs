//! What a drafter should answer, computed without its service: fresh forwards, one at a time.

use std::sync::Arc;

use model::Model;
use model::source::ServedModel;
use speculation::history::History;
use speculation::noise::Noise;
use speculation::pipeline::{Pipeline, Want};
use speculation::ports::{LanguageModel, Rows, Segment};
use speculation::sampling::SamplingParams;
use wire::v1::Open;

/// A model's distributions at one position.
pub(super) struct Distributions {
    /// The sampling distribution (vocab).
    pub(super) probs: Vec<f32>,
    /// The unscaled distribution (vocab).
    pub(super) unscaled: Vec<f32>,
    /// The hidden state at the token before the position.
    pub(super) hidden: Vec<f32>,
}

/// A model, and the session it is asked in.
pub(super) struct Reference {
    model: Model,
    pub(super) prompt: Vec<u32>,
    pub(super) sampling: Arc<SamplingParams>,
    pub(super) noise: Noise,
    vocab_size: usize,
}

impl Reference {
    pub(super) fn new(served: ServedModel<Model>, opening: &Open) -> Self {
        let ends = opening.end_token_ids.clone();
        let sampling =
            wire::sampling::from_wire(opening.sampling.clone(), ends, opening.vocab_size);
        Self {
            model: served.model,
            prompt: opening.prompt_token_ids.clone(),
            sampling: Arc::new(sampling.expect("parameters in order")),
            noise: Noise::new(opening.seed, opening.choice),
            vocab_size: opening.vocab_size as usize,
        }
    }

    /// The distributions after `output` and then `drafts`.
    pub(super) fn after(&mut self, output: &[u32], drafts: &[u32]) -> Distributions {
        let tokens = [&self.prompt, output, drafts].concat();
        let mut cache = self.model.new_cache();
        let mut rows = Rows {
            want_hidden: true,
            ..Rows::default()
        };
        let mut segment = [Segment {
            cache: &mut cache,
            tokens: &tokens,
            parents: &[],
            scored_from: tokens.len() - 1,
        }];
        self.model.forward(&mut segment, &mut rows).expect("a row");
        let generated = [output, drafts].concat();
        let history = History::new(&self.sampling, &self.prompt, &generated);
        let want = Want {
            unscaled: true,
            ..Want::default()
        };
        let mut probs = rows.logits[..self.vocab_size].to_vec();
        let mut unscaled = Vec::new();
        let position = generated.len() as u32;
        let seen = Pipeline::new(Arc::clone(&self.sampling))
            .distributions(&mut probs, &mut unscaled, want, &history, position)
            .expect("distributions");
        Distributions {
            unscaled: if seen.unscaled {
                unscaled
            } else {
                probs.clone()
            },
            probs,
            hidden: rows.hidden,
        }
    }
}
