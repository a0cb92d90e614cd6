//! Loading through a folder that packed matrices are kept in.

use std::path::Path;
use std::sync::Arc;

use super::{Checkpoint, CheckpointError};
use crate::computation::CpuFormat;
use crate::linear::LAYOUT;
use crate::runtime::Model;
use crate::weights_cache::{CacheEntry, PackedStore};

impl Checkpoint {
    /// Loads the model from what `folder` keeps of it. What is not there is packed, and kept for the next who asks; this
    /// process maps it too, so that there is one copy of it in memory.
    pub(super) fn load_cached(
        &self,
        folder: &Path,
        format: CpuFormat,
    ) -> Result<Model, CheckpointError> {
        let kernels = format.weights.kernel_family();
        let entry = CacheEntry::new(folder, &self.fingerprint(), kernels, LAYOUT);
        if let Some(kept) = entry.open() {
            let (model, kept) = self.load_through(kept, format)?;
            if !kept.is_lacking() {
                return Ok(model);
            }
            tracing::warn!("packed weights are made anew: some matrices are not among them");
        }
        let Some(begun) = entry.create() else {
            return self.load_on_cpu(&self.weights, format);
        };
        let (model, begun) = self.load_through(begun, format)?;
        match Arc::into_inner(begun).and_then(|begun| entry.finish(begun)) {
            Some(kept) => {
                drop(model);
                self.load_through(kept, format).map(|(model, _)| model)
            }
            None => Ok(model),
        }
    }

    /// Loads the model with matrices from or to `store`.
    fn load_through(
        &self,
        store: PackedStore,
        format: CpuFormat,
    ) -> Result<(Model, Arc<PackedStore>), CheckpointError> {
        let store = Arc::new(store);
        let model = self.load_on_cpu(&self.weights.packed_in(&store), format)?;
        Ok((model, store))
    }
}

#[cfg(test)]
mod tests;
