//! A model of llama.cpp together with the context that borrows it.

use std::path::Path;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use self_cell::self_cell;

use crate::loading::{self, ContextSettings, LoadError};
use crate::settings::{KvType, Settings};

self_cell!(
    /// A context borrows its model.
    pub(crate) struct Owned {
        owner: LlamaModel,
        #[covariant]
        dependent: LlamaContext,
    }
);

impl Owned {
    /// Loads the GGUF file at `path` with room for `cells` tokens, whose keys and values are in `kv`.
    ///
    /// # Errors
    /// If llama.cpp does not read it, or a setting is out of range.
    pub(crate) fn load(
        path: &Path,
        settings: &Settings,
        kv: KvType,
        cells: usize,
    ) -> Result<(Self, ContextSettings), LoadError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let of_context = ContextSettings {
            threads: settings.threads_on(cores as u32)?,
            kv,
            flash_attention: settings.flash_attention,
        };
        let model = loading::model(path, settings)?;
        let owned = Self::try_new(model, |model| loading::context(model, &of_context, cells))?;
        Ok((owned, of_context))
    }
}
