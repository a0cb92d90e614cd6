//! Models of candle-transformers behind the engine port: families that this crate's own runtime does not have.
//!
//! candle computes one sequence a forward, and its sums depend on how many rows there are: a row's numbers depend on its
//! own sequence up to rounding only. `cache.rs` says how a sequence forgets tokens.
//!
//! Some of its models return the last row of a forward only. They draft, and give the rows of several positions at the price
//! of as many forwards: as targets they would gain nothing from drafts, so [`DraftsOnly`] refuses them there.

mod body;
mod cache;
mod config;
mod error;
pub(crate) mod family;
mod place;
mod random;
mod tensors;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::{DType, Device, Result, Tensor};
use speculation::ports::{Caps, KvCache, KvMemory, LanguageModel, ModelShape, Rows, Segment};
use speculation::tree_paths::TreePaths;

use self::body::Body;
pub use self::cache::CandleCache;
pub use self::config::CandleConfig;
pub use self::error::{CandleError, DraftsOnly};
use self::place::{dtype, open};
pub use self::random::random;
use self::tensors::{Origin, build};
use crate::candle_failure::{failure, first_line};
use crate::computation::{ComputeDevice, NumberFormat};
use crate::forward_error::{ForwardError, check_segment};
use crate::free_memory;
use crate::weights::Weights;

/// Version of candle-transformers, as the workspace names it: part of what numbers depend on.
pub const VERSION: &str = "0.11.1";
/// Share of the free memory that keys and values get where `kv_tokens` is 0.
const SHARE: (u64, u64) = (2, 5);

/// A model that candle-transformers computes. Clones share weights, and count their memory together.
#[derive(Clone, Debug)]
pub struct CandleModel {
    config: CandleConfig,
    /// candle's model, with a sequence of no token.
    empty: Arc<dyn Body>,
    /// The LM head, `(hidden_size, vocab_size)`, where candle's model returns hidden states.
    head: Option<Tensor>,
    /// Format of weights, keys and values.
    dtype: DType,
    device: Device,
    /// Weights that are read for a token.
    weights_per_token: u64,
    /// Pages that all sequences take.
    pages: Arc<AtomicUsize>,
}

impl CandleModel {
    /// Reads every tensor and brings it to `place` in `format`.
    ///
    /// # Errors
    /// If there is no such device, or the tensors are others than those of a model of `config`.
    pub fn load(
        config: &CandleConfig,
        weights: &Weights,
        format: NumberFormat,
        place: ComputeDevice,
    ) -> std::result::Result<Self, CandleError> {
        let device = open(place)?;
        weights.progress.begin(weights.bytes());
        let dtype = dtype(format);
        let mut parts = build(config, Origin::Read(weights), dtype, &device)?;
        weights.progress.end();
        let refused = |error: candle_core::Error| CandleError::Refused(first_line(&error));
        let head = parts.head.map(|head| head.t()).transpose();
        let head = head.map_err(refused)?;
        parts.body.prepare(&device).map_err(refused)?;
        Ok(Self {
            weights_per_token: weights_per_token(config, &parts.shapes),
            config: config.clone(),
            empty: Arc::from(parts.body),
            head,
            dtype,
            device,
            pages: Arc::default(),
        })
    }

    /// Checks that every tensor of the model is there, and no other, without reading them. Returns how many numbers they
    /// are.
    ///
    /// # Errors
    /// As [`CandleModel::load`], but for tensors that are damaged.
    pub fn check(
        config: &CandleConfig,
        weights: &Weights,
    ) -> std::result::Result<u64, CandleError> {
        let origin = Origin::Checked(weights);
        let parts = build(config, origin, DType::F32, &Device::Cpu)?;
        let numbers = parts
            .shapes
            .values()
            .map(|shape| shape.iter().product::<usize>());
        Ok(numbers.sum::<usize>() as u64)
    }

    /// Returns what `config.json` says of it.
    pub fn config(&self) -> &CandleConfig {
        &self.config
    }

    /// Returns how many weights are read for a token of the output; of experts only the chosen ones count.
    pub fn weights_per_token(&self) -> u64 {
        self.weights_per_token
    }

    /// Bytes that a page takes.
    fn page_bytes(&self) -> usize {
        let numbers = self.config.token_numbers() * self.config.family.keeping.page_tokens;
        numbers * self.dtype.size_in_bytes()
    }

    /// Appends a segment, and its scored rows to `rows`.
    fn append(&self, segment: &mut Segment<'_, CandleCache>, rows: &mut Rows) -> Result<()> {
        let scored = segment.tokens.len().saturating_sub(segment.scored_from);
        let appended = (segment.cache).append(segment.tokens, scored, &self.device)?;
        let Some(last) = appended else {
            return Ok(());
        };
        let numbers =
            |tensor: &Tensor| tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>();
        match &self.head {
            Some(head) => rows.logits.extend(numbers(&last.matmul(head)?)?),
            None => rows.logits.extend(numbers(&last)?),
        }
        if rows.want_hidden && self.head.is_some() {
            rows.hidden.extend(numbers(&last)?);
        }
        Ok(())
    }
}

/// Returns how many weights of a model with tensors of these `shapes` are read for a token of the output.
fn weights_per_token(config: &CandleConfig, shapes: &BTreeMap<String, Vec<usize>>) -> u64 {
    let active = config.active_experts();
    let tied = config.constants.is_tied();
    let matrices = shapes.iter().map(|(name, shape)| match shape[..] {
        // A token reads one row of the embedding table, but all of it where the table is the LM head too.
        [rows, inputs] if tied || !tensors::is_table(name) => {
            let share = if name.contains(".experts.") {
                active
            } else {
                1.0
            };
            (rows * inputs) as f64 * share
        }
        _ => 0.0,
    });
    matrices.sum::<f64>() as u64
}

impl LanguageModel for CandleModel {
    type Cache = CandleCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        self.config.shape()
    }

    fn caps(&self) -> Caps {
        Caps {
            trees: false,
            growing_trees: false,
            bit_invariant: false,
            max_sequences: usize::MAX,
        }
    }

    fn new_cache(&self) -> CandleCache {
        let family = self.config.family;
        let kind = (family.returns, family.keeping);
        CandleCache::new(Arc::clone(&self.empty), kind, Arc::clone(&self.pages))
    }

    fn memory(&self) -> Option<KvMemory> {
        let keeping = self.config.family.keeping;
        Some(KvMemory {
            used_pages: self.pages.load(Ordering::Relaxed),
            page_tokens: keeping.page_tokens,
            pages_a_run: keeping.pages_a_run,
        })
    }

    fn free_pages(&self) -> Option<usize> {
        let free = match &self.device {
            Device::Cpu => free_memory::free_bytes(),
            #[cfg(feature = "device")]
            device => crate::device::free_bytes(device).map(|bytes| bytes as u64),
            #[cfg(not(feature = "device"))]
            _ => None,
        };
        let share = free? / SHARE.1 * SHARE.0;
        Some(share as usize / self.page_bytes().max(1))
    }

    fn is_out_of_memory(error: &ForwardError) -> bool {
        matches!(error, ForwardError::OutOfMemory(_))
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, CandleCache>],
        rows: &mut Rows,
    ) -> std::result::Result<(), ForwardError> {
        let shape = self.shape();
        for segment in batch.iter() {
            let mut nodes = (0..).zip(segment.parents);
            if nodes.any(|(node, parent)| *parent != u32::checked_sub(node, 1)) {
                return Err(ForwardError::NoTrees);
            }
            check_segment(segment, None, shape, &mut TreePaths::default())?;
        }
        rows.vocab_size = shape.vocab_size;
        rows.logits.clear();
        rows.hidden.clear();
        let before: Vec<usize> = batch.iter().map(|segment| segment.cache.len()).collect();
        for index in 0..batch.len() {
            if let Err(error) = self.append(&mut batch[index], rows) {
                // The segments before it were computed, and forget their tokens again.
                for (segment, &len) in batch.iter_mut().zip(&before) {
                    segment.cache.truncate(len);
                }
                return Err(failure(&error));
            }
        }
        Ok(())
    }
}
