//! Why a verifier does not start, and how a failed round is reported.

use std::time::Duration;

use model::engine::{EngineError, Rejected, SpawnError};
use model::source::SourceError;
use server::lifecycle::ServeError;
use server::listen::BindError;
use server::progress::Stalled;
use server::reflection::ReflectionError;
use speculation::pipeline::LawError;
use speculation::proposal::BadProposal;
use tonic::Status;
use wire::status::{BadField, overloaded};

/// Why a verifier does not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum VerifierError {
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The target model cannot be loaded.
    #[error("verifier.model: {0}")]
    Model(#[from] SourceError),
    /// The target model has no tokenizer, and the coordinator asks the verifier for it.
    #[error("verifier.model: no tokenizer.json beside the weights of '{0}'")]
    NoTokenizer(String),
    /// The engine did not start.
    #[error("verifier: {0}")]
    Engine(#[from] SpawnError),
    /// Reflection cannot be served.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// The server failed, or the engine panicked.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// How long a coordinator should wait when the engine's queue is full: a few forwards.
const QUEUE_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Why a round could not be decided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RoundError {
    /// The engine's queue is full, or the engine has stopped.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The model failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model gave no law.
    #[error("target model: {0}")]
    Law(#[from] LawError),
    /// A draft law is malformed.
    #[error("proposals: {0}")]
    Proposal(#[from] BadProposal),
    /// The target model's context is too short.
    #[error("context is full: {len} tokens, the target model holds {context_len}")]
    ContextFull {
        /// Prompt, output and drafts.
        len: usize,
        /// The model's context.
        context_len: usize,
    },
    /// Neither decided in time nor any closer to it.
    #[error("no verdict within {0:?}, and no progress")]
    Late(Duration),
    /// The engine dropped the task without a word.
    #[error("the engine dropped the round")]
    Dropped,
}

impl From<Stalled> for RoundError {
    fn from(Stalled(limit): Stalled) -> Self {
        Self::Late(limit)
    }
}

impl From<RoundError> for Status {
    fn from(error: RoundError) -> Self {
        let message = error.to_string();
        match error {
            RoundError::Rejected(Rejected::Full { .. }) => overloaded(message, QUEUE_RETRY_AFTER),
            // A neighbour in the batch may be to blame, and another replica may do better.
            RoundError::Rejected(Rejected::Stopped)
            | RoundError::Dropped
            | RoundError::Engine(EngineError::Forward(_) | EngineError::Panicked { .. }) => {
                Status::unavailable(message)
            }
            RoundError::Proposal(bad) => BadField::new("proposals", bad.to_string()).into(),
            RoundError::Law(LawError::NoSupport) => BadField::new("sampling", message).into(),
            RoundError::ContextFull { .. } | RoundError::Engine(EngineError::OverBudget { .. }) => {
                Status::out_of_range(message)
            }
            RoundError::Late(_) => Status::deadline_exceeded(message),
            RoundError::Engine(_) | RoundError::Law(_) => Status::internal(message),
        }
    }
}
