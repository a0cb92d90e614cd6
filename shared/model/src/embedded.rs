//! The default pair, compiled in: a target and a draft model with one tokenizer, and a second,
//! smaller draft model, so that the program works out of the box and offline.

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::head::{AcceptanceHead, HeadError};

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

/// The file of the default pair's bigram table; none in a build without the feature `embedded`.
#[cfg_attr(
    feature = "embedded",
    expect(
        clippy::unnecessary_wraps,
        reason = "there is none without the feature"
    )
)]
pub(crate) fn bigram() -> Option<std::borrow::Cow<'static, [u8]>> {
    #[cfg(feature = "embedded")]
    return Some(files::bigram());
    #[cfg(not(feature = "embedded"))]
    return None;
}

/// A smaller draft model, for cascades of drafters.
///
/// # Errors
/// [`CheckpointError::NotEmbedded`] in a build without the feature `embedded`.
pub fn small() -> Result<Checkpoint, CheckpointError> {
    #[cfg(feature = "embedded")]
    return Checkpoint::from_bytes(files::small());
    #[cfg(not(feature = "embedded"))]
    return Err(CheckpointError::NotEmbedded);
}

/// The acceptance heads of the default model in `role`, none for the target.
///
/// # Errors
/// If one of them cannot be read.
pub fn heads(role: &str) -> Result<Vec<AcceptanceHead>, HeadError> {
    #[cfg(feature = "embedded")]
    let files = files::heads();
    #[cfg(not(feature = "embedded"))]
    let files: [(&str, &[u8]); 0] = [];
    let of_role = files.into_iter().filter(|_| role == "draft");
    of_role
        .map(|(name, bytes)| AcceptanceHead::from_bytes(bytes, &format!("embedded:draft/{name}")))
        .collect()
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

    pub(super) fn bigram() -> Cow<'static, [u8]> {
        file!("bigram.safetensors")
    }

    pub(super) fn draft() -> CheckpointFiles {
        CheckpointFiles {
            config: file!("draft/config.json"),
            weights: file!("draft/model.safetensors"),
            ..target()
        }
    }

    pub(super) fn small() -> CheckpointFiles {
        CheckpointFiles {
            config: file!("small/config.json"),
            weights: file!("small/model.safetensors"),
            ..target()
        }
    }

    /// Names and bytes of the draft model's heads.
    pub(super) fn heads() -> [(&'static str, Cow<'static, [u8]>); 2] {
        [
            (
                "head-coupled.safetensors",
                file!("draft/head-coupled.safetensors"),
            ),
            (
                "head-rejection.safetensors",
                file!("draft/head-rejection.safetensors"),
            ),
        ]
    }
}
