//! Why a peer could not do what it was asked.

use std::time::Duration;

use net::fault::{connection_fault, describe};
use speculation::session::Peer;
use strum::{IntoStaticStr, VariantNames};
use tonic::Status;
use wire::describe::Mismatch;
use wire::failure::Failure;
use wire::status::{self, BadField, PeerFailure};

/// Kinds of failures of a peer, as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum PeerFault {
    /// It cannot be reached, or its stream broke.
    Unreachable,
    /// It did not answer in time.
    Timeout,
    /// It has too much to do.
    Overloaded,
    /// It does not do what is asked.
    Refused,
    /// Its answer cannot be right.
    Malformed,
    /// The draft model's context is full.
    ContextFull,
}

impl PeerFault {
    /// Returns its name in logs and metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What to look at where no peer has said anything.
const NOT_CONFIGURED: &str = "is one running, and does coordinator.models name it?";

/// Why a peer could not do what it was asked. What is displayed may reach clients, so no address stands in it.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// None of the peers configured is believed alive; with what one of them failed at last, if that is known.
    #[error("no {} is reachable: {}", .0.name(), .1.as_deref().unwrap_or(NOT_CONFIGURED))]
    NoneAlive(Peer, Option<String>),
    /// It answered with a status, or the connection broke.
    #[error("{}", client_text(.0))]
    Status(Box<Status>),
    /// It does not fit the rest.
    #[error("{0}")]
    Mismatch(Box<Mismatch>),
    /// It cannot do what the request needs.
    #[error("{0}")]
    Unable(Box<BadField>),
    /// It answered what cannot be right.
    #[error("{0}")]
    Malformed(String),
    /// What it sent of its distributions cannot be.
    #[error("{0}")]
    Proposals(String),
    /// It takes no block as long.
    #[error("it takes {max_draft_tokens} draft tokens in a round")]
    TooLong {
        /// How many it takes.
        max_draft_tokens: u32,
    },
    /// The request has no room in the draft model's context of so many tokens.
    #[error("the draft model's context of {0} tokens is full")]
    ContextFull(u32),
    /// The coordinator's own decision failed: a fault in the program.
    #[error("the decision of a block failed")]
    Decision,
    /// It did not answer in time.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// What was left of the request's own time was too short for an answer: nobody's fault.
    #[error("no answer within the {0:?} that were left of the request's time")]
    OutOfTime(Duration),
}

/// Returns what a client is told of a peer's status: its code and message. Of a status that was made here, of a
/// connection that broke or did not come about, only the cause: the rest names addresses.
fn client_text(status: &Status) -> String {
    connection_fault(status).unwrap_or_else(|| format!("{:?}: {}", status.code(), status.message()))
}

impl CallError {
    /// Returns what an operator is told, causes included.
    pub fn details(&self) -> String {
        match self {
            Self::Status(status) => describe(status),
            other => other.to_string(),
        }
    }

    /// Returns whether a peer is not what it said when it was asked: it, or the engine behind it, was replaced.
    pub fn is_outdated(&self) -> bool {
        let fields = ["model", "vocab_fingerprint", "numerics"];
        fields.into_iter().any(|field| self.names(field))
    }

    /// Returns whether the drafter is to blame for what it sent of its distributions; the verifier may be the one to
    /// see it.
    pub fn blames_proposals(&self) -> bool {
        matches!(self, Self::Proposals(_)) || self.names("proposals")
    }

    /// Returns whether the peer finds fault with this field.
    fn names(&self, field: &str) -> bool {
        matches!(self, Self::Status(status) if status::names_field(status, field))
    }

    /// Returns whether another replica may do better.
    pub fn is_worth_another(&self) -> bool {
        matches!(
            self,
            Self::Unable(_) | Self::ContextFull(_) | Self::Mismatch(_)
        ) || self.failure() == PeerFailure::Transient
    }

    /// Returns the kind of failure.
    pub fn fault(&self) -> PeerFault {
        match self {
            Self::NoneAlive(..) => PeerFault::Unreachable,
            Self::Late(_) | Self::OutOfTime(_) => PeerFault::Timeout,
            Self::ContextFull(_) => PeerFault::ContextFull,
            Self::Decision | Self::Malformed(_) | Self::Proposals(_) => PeerFault::Malformed,
            Self::Mismatch(_) | Self::Unable(_) | Self::TooLong { .. } => PeerFault::Refused,
            Self::Status(status) => {
                let is = |failure| Failure::of_status(status) == Some(failure);
                match status::classify(status) {
                    PeerFailure::Overloaded { .. } => PeerFault::Overloaded,
                    // So a drafter says it of a cascade, the smaller models of which are not described.
                    PeerFailure::Permanent if is(Failure::ContextFull) => PeerFault::ContextFull,
                    PeerFailure::Permanent => PeerFault::Refused,
                    PeerFailure::Transient if is(Failure::Late) => PeerFault::Timeout,
                    PeerFailure::Transient => PeerFault::Unreachable,
                }
            }
        }
    }

    /// Returns what the failure means for the request.
    pub fn failure(&self) -> PeerFailure {
        match self {
            Self::Status(status) => status::classify(status),
            Self::Late(_) | Self::OutOfTime(_) => PeerFailure::Transient,
            _ => PeerFailure::Permanent,
        }
    }
}
