//! What happens to a request, as one enum: the front and the driver make the events, `observe` consumes them.
//!
//! An event carries everything that is told of it. Whoever makes one decides nothing by it: watched or not, a
//! request takes the same course.

use std::net::SocketAddr;
use std::time::Duration;

use fleet::PeerFault;
use speculation::goodput::Decision;
use speculation::session::{Fallback, Input, Peer, Request, Statistics};
use strum::{IntoStaticStr, VariantNames};
use wire::v1;

use crate::admitted::AdmittedRequest;

/// What a request is waiting for, with its name in logs, spans and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub(crate) enum RequestStage {
    /// To be let in, checked and tokenised.
    Preparing,
    /// A drafter.
    Drafting,
    /// A verdict.
    Verifying,
    /// The target, which decodes alone.
    Decoding,
    /// The log probabilities of the prompt.
    Scoring,
}

impl RequestStage {
    /// Returns the stage of a request that waits for the answer to `request`.
    pub(crate) fn of(request: &Request) -> Self {
        match request {
            Request::Draft { .. } => Self::Drafting,
            Request::Verify { .. } => Self::Verifying,
            Request::Decode { .. } => Self::Decoding,
            Request::Score { .. } => Self::Scoring,
        }
    }
}

/// Where the time of an answer went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerTiming {
    /// From the request being sent to the answer, as seen from here.
    pub(crate) elapsed: Duration,
    /// What the peer says of its share.
    pub(crate) reported: v1::Timing,
    /// Deciding a block here, where the coordinator decides.
    pub(crate) decided: Duration,
}

/// Counts of the draft tokens of one source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proposed {
    pub(crate) source: &'static str,
    /// Draft tokens sent.
    pub(crate) tokens: u64,
    /// Accepted draft tokens that this source proposed first.
    pub(crate) accepted: u64,
}

impl Proposed {
    /// Those of a source called `source`, before it proposed anything.
    pub(crate) fn nothing_by(source: &'static str) -> Self {
        Self {
            source,
            tokens: 0,
            accepted: 0,
        }
    }
}

/// What happened to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestEvent<'a> {
    /// It was let in.
    Admitted,
    /// It is in order and its prompt is in tokens; `request_id` is what the client is told.
    Prepared {
        request: &'a AdmittedRequest,
        request_id: &'a str,
    },
    /// A peer is asked, for the `attempt`th time after the first.
    Sent {
        round: u64,
        attempt: u32,
        base_len: u32,
        request: &'a Request,
    },
    /// The session decided the length of the round under draft length `auto`. `prices` are the seconds that other
    /// sequences wait for one more row at the verifier, and for one more draft token.
    LengthDecided {
        decision: Decision,
        prices: (f64, f64),
    },
    /// The peer asked has answered.
    Answered {
        input: &'a Input,
        timing: AnswerTiming,
        address: Option<SocketAddr>,
    },
    /// What was asked has failed for `peer`. The reason may name addresses: it is for operators.
    Failed {
        round: u64,
        peer: Peer,
        fault: PeerFault,
        reason: &'a str,
        address: Option<SocketAddr>,
    },
    /// The request goes on without `fallback.peer`.
    FellBack {
        fallback: &'a Fallback,
        fault: PeerFault,
    },
    /// The session moved to another replica, so many times since it was last told; `migrations` in all.
    Moved { times: u32, migrations: u32 },
    /// Output is about to go to the client.
    Emitted { chunk: &'a v1::Chunk },
    /// A round is over that gave tokens; a part of decoding alone is none. `verified` if a verdict gave
    /// them.
    RoundEnded {
        report: &'a v1::RoundReport,
        verified: bool,
    },
    /// What became of the drafts that were proposed while the target decoded: of each source, and why others had no row.
    Streamed {
        proposed: &'a [Proposed],
        counted: v1::ForwardDrafts,
    },
    /// The output is complete; what is left is to tell the client.
    Flushing,
    /// The request is over, as the client is told.
    Finished {
        request: &'a AdmittedRequest,
        finished: &'a v1::Finished,
        statistics: &'a Statistics,
        /// What it waited for when the client left, if that ended it.
        stage: Option<RequestStage>,
        /// Names its trace, if it is sampled.
        trace_id: Option<&'a str>,
    },
    /// The client left while the request waited in this stage, and nobody is told its end.
    Dropped { stage: RequestStage },
}
