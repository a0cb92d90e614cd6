//! The default pair, compiled in: a target and a draft model with one tokenizer, so that the
//! program works out of the box and offline.

use crate::checkpoint::{Checkpoint, CheckpointError};

/// The default target model.
///
/// # Errors
/// [`CheckpointError::NotEmbedded`] in a build without the feature `embedded`.
pub fn target() -> Result<Checkpoint, CheckpointError> {
    #[cfg(feature = "embedded")]
    return Checkpoint::from_bytes(files::target());
    #[cfg(not(feature = "embedded"))]
    return Err(CheckpointError::NotEmbedded);
}

/// The default draft model.
///
/// # Errors
/// [`CheckpointError::NotEmbedded`] in a build without the feature `embedded`.
pub fn draft() -> Result<Checkpoint, CheckpointError> {
    #[cfg(feature = "embedded")]
    return Checkpoint::from_bytes(files::draft());
    #[cfg(not(feature = "embedded"))]
    return Err(CheckpointError::NotEmbedded);
}

#[cfg(feature = "embedded")]
mod files {
    use std::borrow::Cow;

    use crate::checkpoint::CheckpointFiles;

    macro_rules! file {
        ($path:literal) => {
            Cow::Borrowed(include_bytes!(concat!("../../../models/default/", $path)).as_slice())
        };
    }

    pub(super) fn target() -> CheckpointFiles {
        CheckpointFiles {
            config: file!("target/config.json"),
            weights: file!("target/model.safetensors"),
            tokenizer: Some(file!("tokenizer/tokenizer.json")),
            tokenizer_config: Some(file!("tokenizer/tokenizer_config.json")),
        }
    }

    pub(super) fn draft() -> CheckpointFiles {
        CheckpointFiles {
            config: file!("draft/config.json"),
            weights: file!("draft/model.safetensors"),
            ..target()
        }
    }
}
