//! What an engine is and can do, found out before it is used.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::ScoringError;
use crate::http::EngineConnection;
use crate::{sglang, vllm};

/// A kind of engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RemoteEngine {
    /// SGLang, by `/generate`.
    #[default]
    Sglang,
    /// vLLM, by `/inference/v1/generate` with its V2 model runner, else by `/v1/completions`, which is slow.
    Vllm,
}

/// How long one question may take.
const TIMEOUT: Duration = Duration::from_mins(1);

impl RemoteEngine {
    /// Asks the engine at the other end of `connection`, whose rows should have `row_len` tokens: what it is, whether it
    /// gives rows, and whether those of given tokens.
    ///
    /// # Errors
    /// If it does not say what is needed, or cannot do what is.
    pub fn probe(
        self,
        connection: EngineConnection,
        row_len: usize,
    ) -> Result<Engine, ScoringError> {
        let deadline = Instant::now() + TIMEOUT;
        match self {
            Self::Sglang => sglang::probe::probe(connection, row_len, deadline),
            Self::Vllm => vllm::probe::probe(connection, row_len, deadline),
        }
    }
}
