//! llama.cpp by its crate alone: what the context with its ledger is measured against.

use std::path::Path;

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::ledger::{DecodeError, SEQUENCES};
use crate::loading::{BATCH, LoadError, Owned};
use crate::settings::{KvType, Settings};

/// A model, and sequences that all hold the same number of tokens.
pub struct Bare {
    owned: Owned,
    batch: LlamaBatch<'static>,
    held: usize,
}

impl Bare {
    /// Loads the GGUF file at `path` with room for `cells` tokens in f32.
    ///
    /// # Errors
    /// As of a context.
    pub fn load(path: &Path, settings: &Settings, cells: usize) -> Result<Self, LoadError> {
        let (owned, _) = Owned::load(path, settings, KvType::F32, cells)?;
        Ok(Self {
            owned,
            batch: LlamaBatch::new(BATCH as usize, 1),
            held: 0,
        })
    }

    /// Makes each of `sequences` hold `tokens` and no more.
    ///
    /// # Errors
    /// If llama.cpp fails.
    pub fn fill(&mut self, sequences: usize, tokens: &[u32]) -> Result<(), DecodeError> {
        debug_assert!(sequences <= SEQUENCES);
        self.owned
            .with_dependent_mut(|_, context| context.clear_kv_cache());
        self.held = 0;
        for part in tokens.chunks(BATCH as usize / sequences) {
            self.decode(sequences, part, |_| ())?;
            self.held += part.len();
        }
        Ok(())
    }

    /// Computes `tokens` at the end of each of `sequences`, gives every row to `row`, and forgets them.
    ///
    /// # Errors
    /// If llama.cpp fails.
    pub fn forward(
        &mut self,
        sequences: usize,
        tokens: &[u32],
        row: impl FnMut(&[f32]),
    ) -> Result<(), DecodeError> {
        self.decode(sequences, tokens, row)?;
        let held = Some(self.held as u32);
        self.owned.with_dependent_mut(|_, context| {
            for sequence in 0..sequences as i32 {
                let removed = context.kv_cache_seq_rm(sequence, held, None);
                removed.map_err(|error| DecodeError::Failed(error.to_string()))?;
            }
            Ok(())
        })
    }

    fn decode(
        &mut self,
        sequences: usize,
        tokens: &[u32],
        mut row: impl FnMut(&[f32]),
    ) -> Result<(), DecodeError> {
        let batch = &mut self.batch;
        batch.clear();
        for sequence in 0..sequences as i32 {
            for (position, token) in (self.held as i32..).zip(tokens) {
                let added = batch.add(LlamaToken(*token as i32), position, &[sequence], true);
                added.map_err(|error| DecodeError::Failed(error.to_string()))?;
            }
        }
        self.owned.with_dependent_mut(|_, context| {
            let decoded = context.decode(batch);
            decoded.map_err(|error| DecodeError::Failed(error.to_string()))?;
            (0..batch.n_tokens()).for_each(|index| row(context.get_logits_ith(index)));
            Ok(())
        })
    }
}
