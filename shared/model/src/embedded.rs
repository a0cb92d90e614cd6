//! The default pair, compiled in: a target and a draft model with one tokenizer, and a second,
//! smaller draft model for cascades of drafters, so that the program works out of the box and offline.

use std::borrow::Cow;

use crate::checkpoint::{Checkpoint, CheckpointError, CheckpointFiles};
use crate::head::{AcceptanceHead, HeadError};

/// The models' roles.
pub const ROLES: [&str; 3] = ["target", "draft", "small"];

/// The default target model.
///
/// # Errors
/// As [`model`].
pub fn target() -> Result<Checkpoint, CheckpointError> {
    model("target")
}

/// The default draft model.
///
/// # Errors
/// As [`model`].
pub fn draft() -> Result<Checkpoint, CheckpointError> {
    model("draft")
}

/// The default model in `role`, one of [`ROLES`].
///
/// # Errors
/// [`CheckpointError::NotEmbedded`] for another role, and in a build without the feature `embedded`.
pub fn model(role: &str) -> Result<Checkpoint, CheckpointError> {
    let of_role = |name: &str| file(&format!("{role}/{name}")).ok_or(CheckpointError::NotEmbedded);
    Checkpoint::from_bytes(CheckpointFiles {
        config: of_role("config.json")?,
        weights: of_role("model.safetensors")?,
        tokenizer: file("tokenizer/tokenizer.json"),
        tokenizer_config: file("tokenizer/tokenizer_config.json"),
    })
}

/// The file of the default pair's bigram table; none in a build without the feature `embedded`.
pub(crate) fn bigram() -> Option<Cow<'static, [u8]>> {
    file("bigram.safetensors")
}

/// The acceptance heads of the default model in `role`, none for the target.
///
/// # Errors
/// If one of them cannot be read.
pub fn heads(role: &str) -> Result<Vec<AcceptanceHead>, HeadError> {
    let paths = ["coupled", "rejection"].map(|label| format!("{role}/head-{label}.safetensors"));
    let files = paths
        .into_iter()
        .filter_map(|path| Some((file(&path)?, path)));
    files
        .map(|(bytes, path)| AcceptanceHead::from_bytes(bytes, &format!("embedded:{path}")))
        .collect()
}

/// A file of `models/default` that is compiled in.
#[cfg(feature = "embedded")]
fn file(path: &str) -> Option<Cow<'static, [u8]>> {
    macro_rules! files {
        ($($path:literal),* $(,)?) => {
            match path {
                $($path => Some(include_bytes!(concat!("../../../models/default/", $path)).as_slice()),)*
                _ => None,
            }
        };
    }
    let found: Option<&[u8]> = files!(
        "target/config.json",
        "target/model.safetensors",
        "draft/config.json",
        "draft/model.safetensors",
        "draft/head-coupled.safetensors",
        "draft/head-rejection.safetensors",
        "small/config.json",
        "small/model.safetensors",
        "tokenizer/tokenizer.json",
        "tokenizer/tokenizer_config.json",
        "bigram.safetensors",
    );
    found.map(Cow::Borrowed)
}

#[cfg(not(feature = "embedded"))]
fn file(_path: &str) -> Option<Cow<'static, [u8]>> {
    None
}
