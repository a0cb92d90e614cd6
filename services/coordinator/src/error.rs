//! Why a coordinator does not start, and why one of its peers cannot be used.

use std::time::Duration;

use server::channel::ChannelError;
use server::lifecycle::ServeError;
use server::listen::BindError;
use server::reflection::ReflectionError;
use tonic::{Code, Status};
use wire::describe::Mismatch;
use wire::status::{self, BadField, PeerFailure};

/// Why a coordinator does not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// A setting cannot be used.
    #[error("coordinator.{key}: {problem}")]
    Setting {
        /// The setting.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A peer's URL is wrong.
    #[error("coordinator.models: {0}")]
    Url(#[from] ChannelError),
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Reflection cannot be served.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// The server failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Why a peer could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    /// None of the peers configured is believed alive.
    #[error("no {who} is reachable")]
    NoneAlive {
        /// Drafter or verifier.
        who: &'static str,
    },
    /// It answered with a status, or the connection broke.
    #[error("{address}: {}", status::describe(status))]
    Status {
        /// Where it is.
        address: String,
        /// What it said.
        status: Box<Status>,
    },
    /// It does not fit the rest.
    #[error("{address}: {mismatch}")]
    Mismatch {
        /// Where it is.
        address: String,
        /// In what.
        mismatch: Box<Mismatch>,
    },
    /// It cannot do what the request needs.
    #[error("{address}: {lacking}")]
    Unable {
        /// Where it is.
        address: String,
        /// The field of the request, and what is lacking.
        lacking: Box<BadField>,
    },
    /// It answered what cannot be right.
    #[error("{address}: {problem}")]
    Malformed {
        /// Where it is.
        address: String,
        /// What it said.
        problem: String,
    },
    /// The verifier sent what is no law.
    #[error("verifier: {0}")]
    Law(BadField),
    /// The coordinator's own decision failed: a fault in the program.
    #[error("the decision of a block failed")]
    Decision,
    /// It did not answer in time.
    #[error("{address}: no answer within {after:?}")]
    Late {
        /// Where it is.
        address: String,
        /// How long it was given.
        after: Duration,
    },
}

/// Kinds of failures of a peer, as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
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
}

impl Fault {
    /// All of them, in the order of their discriminants.
    pub(crate) const ALL: [Self; 5] = [
        Self::Unreachable,
        Self::Timeout,
        Self::Overloaded,
        Self::Refused,
        Self::Malformed,
    ];

    /// Its name in figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
        }
    }
}

impl PeerError {
    /// Whether a peer serves another model than it said when it was asked: it was restarted.
    pub(crate) fn is_outdated(&self) -> bool {
        let names = |status, field| status::names_field(status, field);
        match self {
            Self::Status { status, .. } => {
                names(status, "model") || names(status, "vocab_fingerprint")
            }
            _ => false,
        }
    }

    /// Whether a verifier refused a block for what the drafter said of its laws.
    pub(crate) fn blames_proposals(&self) -> bool {
        match self {
            Self::Status { status, .. } => status::names_field(status, "proposals"),
            _ => false,
        }
    }

    /// What kind of failure it is.
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::NoneAlive { .. } => Fault::Unreachable,
            Self::Late { .. } => Fault::Timeout,
            Self::Law(_) | Self::Decision | Self::Malformed { .. } => Fault::Malformed,
            Self::Mismatch { .. } | Self::Unable { .. } => Fault::Refused,
            Self::Status { status, .. } => match status::classify(status) {
                PeerFailure::Overloaded { .. } => Fault::Overloaded,
                PeerFailure::Permanent => Fault::Refused,
                PeerFailure::Transient if status.code() == Code::DeadlineExceeded => Fault::Timeout,
                PeerFailure::Transient => Fault::Unreachable,
            },
        }
    }

    /// What the failure means for the request.
    pub(crate) fn failure(&self) -> PeerFailure {
        match self {
            Self::Status { status, .. } => status::classify(status),
            Self::Late { .. } => PeerFailure::Transient,
            Self::Law(_)
            | Self::Decision
            | Self::NoneAlive { .. }
            | Self::Mismatch { .. }
            | Self::Unable { .. }
            | Self::Malformed { .. } => PeerFailure::Permanent,
        }
    }
}
