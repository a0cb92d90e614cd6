//! Flags for the models of services that a command runs in its own process.

use clap::Args;
use serde_json::{Value, json};

/// Models of the services in this process.
#[derive(Clone, Debug, Default, Args)]
pub struct ModelArgs {
    /// Model that the verifier serves in this process: as in `serve verifier --model`.
    #[arg(long, value_name = "MODEL")]
    target_model: Option<String>,
    /// Model that the drafter serves in this process: as in `serve drafter --model`.
    #[arg(long, value_name = "MODEL")]
    draft_model: Option<String>,
}

impl ModelArgs {
    /// The flags given, as settings.
    pub fn settings(&self) -> Value {
        json!({
            "verifier": { "model": { "path": self.target_model } },
            "drafter": { "model": { "path": self.draft_model } },
        })
    }

    /// Whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.target_model.is_none() && self.draft_model.is_none()
    }
}
