//! A loaded model with its one context.

use std::path::Path;

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use crate::ledger::{BadEntry, BatchToken, CellLedger, DecodeError, SEQUENCES, SequenceId};
use crate::loading::{self, BATCH, LoadError, Owned};
use crate::pieces::{self, LlamaVocabulary};
use crate::settings::{KvType, Settings};

/// Tokens that a context holds before [`Context::reserve`].
const FIRST_CELLS: usize = BATCH as usize;

/// A model, and the memory of up to [`SEQUENCES`] sequences.
#[derive(derive_more::Debug)]
#[debug("Context {{ settings: {settings:?}, .. }}")]
pub struct Context {
    owned: Owned,
    settings: Settings,
    kv: KvType,
    ledger: CellLedger,
    batch: LlamaBatch<'static>,
    vocab_size: usize,
}

impl Context {
    /// Loads the GGUF file at `path`, with keys and values in `kv`.
    ///
    /// # Errors
    /// If llama.cpp does not read it, it is no causal decoder whose tokens can be taken back, or a setting is out of
    /// range.
    pub fn load(path: &Path, settings: &Settings, kv: KvType) -> Result<Self, LoadError> {
        let (owned, settings) = Owned::load(path, settings, kv, FIRST_CELLS)?;
        let vocab_size = usize::try_from(owned.borrow_owner().n_vocab()).unwrap_or_default();
        let mut loaded = Self {
            owned,
            settings,
            kv,
            ledger: CellLedger::new(FIRST_CELLS, vocab_size),
            batch: LlamaBatch::new(BATCH as usize, SEQUENCES as i32),
            vocab_size,
        };
        loaded.check_memory()?;
        Ok(loaded)
    }

    /// Checks that a sequence holds its tokens and can forget the last, as rounds need it: tried, since not every
    /// kind of memory that does not is known by name. llama.cpp takes all calls for a model without memory, and
    /// computes each batch of it alone.
    fn check_memory(&mut self) -> Result<(), LoadError> {
        let sequence = self.take().ok_or(LoadError::NoMemory)?;
        let entry = BatchToken {
            token: 0,
            sequences: &[sequence],
            is_scored: false,
        };
        self.decode(&[entry; 2], |_| ())?;
        if self.last_position(sequence) != 1 {
            return Err(LoadError::NoMemory);
        }
        if !self.truncate(sequence, 1) || self.last_position(sequence) != 0 {
            return Err(LoadError::Recurrent);
        }
        self.give_back(sequence);
        Ok(())
    }

    /// Where the last token is that llama.cpp holds of a sequence; negative if it holds none.
    fn last_position(&self, sequence: SequenceId) -> i32 {
        let context = self.owned.borrow_dependent();
        context.kv_cache_seq_pos_max(sequence.index() as i32)
    }

    /// Makes room for `cells` tokens of all sequences together, instead of what there was. All sequences are empty
    /// then.
    ///
    /// # Errors
    /// If there is not as much memory; the room is then what it was.
    ///
    /// # Panics
    /// If a sequence holds tokens.
    pub fn reserve(&mut self, cells: usize) -> Result<(), LoadError> {
        assert!(self.ledger.is_empty(), "sequences hold tokens");
        let (settings, kv) = (&self.settings, self.kv);
        self.owned.with_dependent_mut(|model, context| {
            *context = loading::context(model, settings, kv, cells)?;
            Ok::<_, LoadError>(())
        })?;
        self.ledger.resize(cells);
        Ok(())
    }

    /// Computes `entries`, and gives the logits, (vocabulary), of each that is scored to `row`, in order.
    ///
    /// # Errors
    /// [`DecodeError`]; every sequence holds what it held before, though `row` may have been called.
    pub fn decode(
        &mut self,
        entries: &[BatchToken<'_>],
        mut row: impl FnMut(&[f32]),
    ) -> Result<(), DecodeError> {
        let mark = self.ledger.mark();
        let mut parts = entries.chunks(BATCH as usize);
        let computed = parts.try_for_each(|part| self.decode_part(part, &mut row));
        if computed.is_err() {
            for (sequence, len) in self.ledger.rewind(&mark) {
                self.forget(sequence, len);
            }
        }
        computed
    }

    /// Computes one batch, 1 to [`BATCH`] entries, as [`Context::decode`] does. Where it fails the caller rewinds the
    /// sequences.
    fn decode_part(
        &mut self,
        entries: &[BatchToken<'_>],
        row: &mut impl FnMut(&[f32]),
    ) -> Result<(), DecodeError> {
        self.batch.clear();
        for entry in entries {
            let position = self.ledger.append(entry)?;
            // No more than the batch was made for: the ledger lets none be named twice.
            let sequences: Vec<i32> = entry.sequences.iter().map(|id| id.index() as i32).collect();
            let token = LlamaToken(entry.token as i32);
            let added = self
                .batch
                .add(token, position as i32, &sequences, entry.is_scored);
            added.map_err(|error| DecodeError::Failed(error.to_string()))?;
        }
        let batch = &mut self.batch;
        self.owned.with_dependent_mut(|_, context| {
            let decoded = context.decode(batch);
            decoded.map_err(|error| DecodeError::Failed(error.to_string()))?;
            let scored = (0..).zip(entries).filter(|(_, entry)| entry.is_scored);
            scored.for_each(|(index, _)| row(context.get_logits_ith(index)));
            Ok(())
        })
    }

    /// Takes a free sequence; none if all are in use.
    pub fn take(&mut self) -> Option<SequenceId> {
        self.ledger.take()
    }

    /// Frees a sequence for another to take it.
    pub fn give_back(&mut self, sequence: SequenceId) {
        self.truncate(sequence, 0);
        self.ledger.give_back(sequence);
    }

    /// Makes `to` share the first `len` tokens of `from`.
    ///
    /// # Errors
    /// [`BadEntry::Diverged`] if it holds others, or `from` fewer.
    pub fn copy(&mut self, from: SequenceId, to: SequenceId, len: usize) -> Result<(), BadEntry> {
        let new = self.ledger.copy(from, to, len)?;
        if new.is_empty() {
            return Ok(());
        }
        let [from, to] = [from, to].map(|id| id.index() as i32);
        let [start, end] = [new.start, new.end].map(|position| Some(position as u32));
        let copied = self
            .owned
            .with_dependent_mut(|_, context| context.kv_cache_seq_cp(from, to, start, end));
        debug_assert!(copied.is_ok(), "positions fit");
        Ok(())
    }

    /// Makes a sequence forget its tokens from `len` on. Returns whether it could: if not, it holds none.
    pub fn truncate(&mut self, sequence: SequenceId, len: usize) -> bool {
        if !self.ledger.truncate(sequence, len) || self.forget(sequence, len) {
            return true;
        }
        self.ledger.truncate(sequence, 0);
        self.forget(sequence, 0);
        false
    }

    /// Has llama.cpp forget what the ledger no longer has.
    fn forget(&mut self, sequence: SequenceId, len: usize) -> bool {
        let sequence = sequence.index() as i32;
        let removed = self.owned.with_dependent_mut(|_, context| {
            context.kv_cache_seq_rm(sequence, Some(len as u32), None)
        });
        removed.is_ok()
    }

    /// Tokens of the vocabulary; the length of a row.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The tokens of the vocabulary.
    pub fn vocabulary(&self) -> LlamaVocabulary {
        pieces::read(self.model())
    }

    /// Longest sequence that the model was made for, in tokens.
    pub fn context_len(&self) -> usize {
        self.model().n_ctx_train() as usize
    }

    /// Numbers of its weights.
    pub fn parameters(&self) -> u64 {
        self.model().n_params()
    }

    /// Its layers.
    pub fn layers(&self) -> u32 {
        self.model().n_layer()
    }

    /// Threads of a forward.
    pub fn threads(&self) -> u32 {
        self.settings.threads
    }

    /// Cells held, each once.
    pub fn used(&self) -> usize {
        self.ledger.used()
    }

    /// Bytes that the room for one token takes, roughly: keys and values, and a column of attention's scores, which
    /// stand for a whole batch at once.
    pub fn token_bytes(&self) -> usize {
        let model = self.model();
        let heads = model.n_head().max(1) as usize;
        let head_dim = usize::try_from(model.n_embd()).unwrap_or_default() / heads;
        let key_len = head_dim * model.n_head_kv() as usize;
        let held = 2 * model.n_layer() as usize * self.kv.bytes(key_len);
        held + BATCH as usize * (heads + 1) * size_of::<f32>()
    }

    fn model(&self) -> &LlamaModel {
        self.owned.borrow_owner()
    }
}
