//! How a failed round is reported.

use std::time::Duration;

use model::engine::{Rejected, TaskError};
use speculation::pipeline::DistributionError;
use speculation::proposal::BadProposal;
use tonic::Status;
use wire::failure::Failure;
use wire::grammar::FIELD;
use wire::status::{BadField, overloaded};

/// How long a coordinator should wait when an engine's queue is full: a few forwards.
const QUEUE_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Why a round could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The engine's queue is full, or the engine has stopped.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The model failed.
    #[error(transparent)]
    Engine(#[from] TaskError),
    /// The model gave no distribution.
    #[error(transparent)]
    Probs(#[from] DistributionError),
    /// A distribution that was proposed is none.
    #[error(transparent)]
    Proposal(#[from] BadProposal),
    /// The model's context is full.
    #[error("context is full: {len} tokens, the model holds {context_len}")]
    ContextFull {
        /// Prompt, output, and what is to follow them.
        len: usize,
        /// The model's context.
        context_len: usize,
    },
    /// Neither answered in this time nor any closer to it.
    #[error("nothing within {0:?}, and no progress")]
    Late(Duration),
    /// The engine dropped the task without a word.
    #[error("the engine dropped the round")]
    Dropped,
    /// What has nothing to do with the model.
    #[error(transparent)]
    Other(#[from] Status),
}

impl From<BadField> for RoundError {
    fn from(bad: BadField) -> Self {
        Self::Other(bad.into())
    }
}

impl RoundError {
    /// Returns the status of a round for an `answer` of a `model`, as they are called; `bad_proposal` says whose fault a
    /// proposal is that is no distribution.
    pub(crate) fn status(
        self,
        model: &str,
        answer: &str,
        bad_proposal: fn(&BadProposal) -> Status,
    ) -> Status {
        match self {
            Self::Rejected(full @ Rejected::Full { .. }) => {
                overloaded(full.to_string(), QUEUE_RETRY_AFTER)
            }
            // A neighbour in the batch may be to blame, and another replica may do better.
            Self::Rejected(stopped) => Failure::Unavailable.status(stopped.to_string()),
            Self::Dropped => Failure::Unavailable.status(self.to_string()),
            Self::Engine(error) => {
                let message = error.to_string();
                match error {
                    TaskError::Forward(_) | TaskError::Panicked { .. } => {
                        Failure::Unavailable.status(message)
                    }
                    TaskError::OverBudget { .. } => Failure::ContextFull.status(message),
                    _ => Failure::Internal.status(message),
                }
            }
            // No fault of this peer's, to be left alone for.
            Self::Probs(error @ DistributionError::NoSupport) => {
                BadField::new("sampling", format!("{model}: {error}")).into()
            }
            Self::Probs(error @ DistributionError::Constraint(_)) => {
                BadField::new(FIELD, error.to_string()).into()
            }
            Self::Probs(error) => Failure::Internal.status(format!("{model}: {error}")),
            Self::Proposal(bad) => bad_proposal(&bad),
            Self::ContextFull { len, context_len } => Failure::ContextFull.status(format!(
                "context is full: {len} tokens, the {model} holds {context_len}"
            )),
            Self::Late(limit) => {
                Failure::Late.status(format!("no {answer} within {limit:?}, and no progress"))
            }
            Self::Other(status) => status,
        }
    }
}
