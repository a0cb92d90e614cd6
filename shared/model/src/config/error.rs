//! Why a `config.json` was refused.

use thiserror::Error;

/// Why a `config.json` was refused.
#[derive(Debug, Error)]
pub enum ModelConfigError {
    /// Not a JSON object.
    #[error("config.json cannot be read")]
    Json(#[from] serde_json::Error),
    /// A key that has no default.
    #[error("config.json has no {0}")]
    Missing(&'static str),
    /// A key holds something of another kind.
    #[error("config.json's {key} cannot be read")]
    Key {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A model of another family.
    #[error("model type {found:?} is not supported: {supported} are")]
    UnsupportedModel {
        /// Its `model_type`.
        found: String,
        /// Those that are.
        supported: String,
    },
    /// An architecture of the family that is no language model.
    #[error("architecture {found:?} is not supported: {supported} is")]
    UnsupportedArchitecture {
        /// The first of its `architectures`.
        found: String,
        /// Those of the family that are.
        supported: String,
    },
    /// Another activation function than the family's.
    #[error("{key} {found:?} is not supported: {supported} is")]
    UnsupportedActivation {
        /// The key that names it.
        key: &'static str,
        /// Its name.
        found: String,
        /// Those that are.
        supported: String,
    },
    /// A frequency scaling other than those of [`crate::RopeScaling`].
    #[error(
        "rope type {0:?} is not supported: default, linear, dynamic, llama3, yarn and longrope are"
    )]
    UnsupportedRope(String),
    /// A rope of no kind, though something would stretch it.
    #[error(
        "{section} has {key} and no rope_type: add the kind that it is, as default, linear, dynamic, llama3, yarn or longrope"
    )]
    UntypedRope {
        /// The section of the file.
        section: &'static str,
        /// What it has instead.
        key: String,
    },
    /// A key that the model's kind of rope needs.
    #[error("rope type {kind} needs {key}")]
    MissingRopeKey {
        /// The kind.
        kind: &'static str,
        /// What it needs.
        key: &'static str,
    },
    /// Weights that were quantised by another program, in a layout of its own.
    #[error(
        "weights quantised by {0:?} are not supported: take the model in f32, f16 or bf16, it is quantised when loaded"
    )]
    Quantized(String),
    /// A value that no model can have, or that none of this crate has.
    #[error("{key} is {found}: {expected}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl ModelConfigError {
    /// `key` holds `found`, where `expected`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers, and texts made for the message"
    )]
    pub(crate) fn invalid(key: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self::Invalid {
            key,
            found: found.to_string(),
            expected,
        }
    }
}

/// Refuses `found` at `key`, where `expected`, if it does not hold.
pub(crate) fn unless(
    holds: bool,
    key: &'static str,
    found: impl ToString,
    expected: &'static str,
) -> Result<(), ModelConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ModelConfigError::invalid(key, found, expected))
    }
}
