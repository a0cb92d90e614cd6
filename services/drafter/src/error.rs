//! Why a drafter does not start, and how a failed round is reported.

use std::time::Duration;

use model::bigram::BigramError;
use model::engine::{EngineError, Rejected, SpawnError};
use model::head::HeadError;
use model::source::SourceError;
use server::lifecycle::ServeError;
use server::listen::BindError;
use server::progress::Stalled;
use server::reflection::ReflectionError;
use speculation::bad_value::BadValue;
use speculation::pipeline::LawError;
use speculation::proposal::BadProposal;
use tonic::Status;
use wire::status::{BadField, overloaded};

/// Why a drafter does not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum DrafterError {
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The draft model cannot be loaded.
    #[error("drafter.model: {0}")]
    Model(#[from] SourceError),
    /// The bigram table cannot be loaded, or is of another vocabulary.
    #[error("drafter.bigram: {0}")]
    Bigram(#[from] BigramError),
    /// An acceptance head cannot be loaded, or is of another draft model.
    #[error("drafter.heads: {0}")]
    Head(#[from] HeadError),
    /// The cascade cannot be.
    #[error("drafter.{}; the drafts are {drafts}", source.to_string().replacen(' ', ".", 1))]
    Cascade {
        /// Why not.
        source: BadValue,
        /// Names of the drafts, Max-Gram included.
        drafts: String,
    },
    /// Another setting is wrong.
    #[error("drafter.{setting}: {problem}")]
    Setting {
        /// The setting, in the section of the drafter.
        setting: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The engine did not start.
    #[error("drafter: {0}")]
    Engine(#[from] SpawnError),
    /// Reflection cannot be served.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// The server failed, or the engine panicked.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl DrafterError {
    pub(crate) fn setting(setting: &str, problem: &str) -> Self {
        Self::Setting {
            setting: setting.to_owned(),
            problem: problem.to_owned(),
        }
    }
}

/// How long a coordinator should wait when the engine's queue is full: a few forwards.
const QUEUE_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Why a round could not be drafted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RoundError {
    /// The engine's queue is full, or the engine has stopped.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The model failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model gave no law.
    #[error("draft model: {0}")]
    Law(#[from] LawError),
    /// A draft law within the cascade is none.
    #[error("cascade: {0}")]
    Proposal(#[from] BadProposal),
    /// The cascade cannot draft what is asked.
    #[error(transparent)]
    Cascade(#[from] BadValue),
    /// The draft model's context is full.
    #[error("context is full: {len} tokens, the draft model holds {context_len}")]
    ContextFull {
        /// Prompt and output.
        len: usize,
        /// The model's context.
        context_len: usize,
    },
    /// Neither drafted in time nor any closer to it.
    #[error("no draft within {0:?}, and no progress")]
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
            RoundError::ContextFull { .. } | RoundError::Engine(EngineError::OverBudget { .. }) => {
                Status::out_of_range(message)
            }
            // No fault of this drafter's, to be left alone for.
            RoundError::Law(LawError::NoSupport) => BadField::new("sampling", message).into(),
            RoundError::Late(_) => Status::deadline_exceeded(message),
            RoundError::Engine(_)
            | RoundError::Law(_)
            | RoundError::Proposal(_)
            | RoundError::Cascade(_) => Status::internal(message),
        }
    }
}
