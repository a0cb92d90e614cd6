//! The streams of one request to its peers, and what is asked on them.

mod draft;
mod verify;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use speculation::session::{Input, Peer, Plan, Request};
use speculation::verification::Verification;
use wire::status::PeerFailure;
use wire::v1;

use crate::attachment::{Attachment, Moves, Opener};
use crate::error::{Fault, PeerError};
use crate::exchange::{Ask, Decoding};
use crate::link::{Drafting, Link, Verifying, WireBytes};
use crate::request::CheckedRequest;
use draft::Told;

/// The streams of one request to its peers.
pub(crate) struct PeerLinks {
    opener: Opener,
    drafter: Attachment<Drafting>,
    verifier: Attachment<Verifying>,
    /// What the drafter told in the round under way.
    told: Told,
    decoding: Option<Decoding>,
    pub(crate) times: RoundTimes,
    /// What the latest failure was.
    pub(crate) fault: Option<Fault>,
    /// Draft laws asked for after blocks, where the coordinator decides.
    pub(crate) laws_fetched: u32,
    /// The laws of the latest round, where they are reported.
    pub(crate) laws: Option<v1::RoundLaws>,
}

/// Where the time of the round under way went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTimes {
    pub(crate) draft: Duration,
    pub(crate) verify: Duration,
    pub(crate) drafter: v1::Timing,
    pub(crate) verifier: v1::Timing,
    /// The verifier's share of the token decoded last.
    pub(crate) decoding: v1::Timing,
    /// Deciding here.
    pub(crate) decided: Duration,
}

impl PeerLinks {
    pub(crate) fn new(request: Arc<CheckedRequest>, session_id: [u8; 16]) -> Self {
        Self {
            opener: Opener::new(request, session_id),
            drafter: Attachment::default(),
            verifier: Attachment::default(),
            told: Told::default(),
            decoding: None,
            times: RoundTimes::default(),
            fault: None,
            laws_fetched: 0,
            laws: None,
        }
    }

    /// Sends `request` to its peer and awaits the answer, as input for the session. A decode round
    /// gives its first tokens; [`PeerLinks::decoded`] gives the next. The caller stops waiting after
    /// the ask's timeout, and the peer is told so.
    pub(crate) async fn ask(&mut self, ask: Ask<'_>, request: &Request) -> Input {
        let began = Instant::now();
        let answered = match request {
            Request::Draft {
                max_tokens,
                bonus_q,
            } => self.draft(ask, *max_tokens, *bonus_q).await,
            Request::Verify {
                drafts,
                horizon,
                layers,
            } => self.verify(ask, drafts, *horizon, layers).await,
            Request::Decode { max_tokens } => self.decode(ask, *max_tokens).await,
        };
        match request.peer() {
            Peer::Drafter => self.times.draft = began.elapsed(),
            Peer::Verifier => self.times.verify = began.elapsed(),
        }
        answered.unwrap_or_else(|error| self.failed(ask.round, request.peer(), &error))
    }

    /// The next tokens of the decode round under way.
    pub(crate) async fn decoded(&mut self, ask: Ask<'_>) -> Input {
        match self.next_decoded(ask).await {
            Ok(input) => input,
            Err(error) => self.failed(ask.round, Peer::Verifier, &error),
        }
    }

    /// Gives up what is under way with a `peer` that did not answer in time. Whoever connects and
    /// says nothing is left alone for a while, so that a retry goes elsewhere.
    pub(crate) fn silent(&mut self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter.silent(),
            Peer::Verifier => self.verifier.silent(),
        }
        self.abandon(peer);
    }

    /// Drops the stream to `peer`.
    fn abandon(&mut self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter.link = None,
            Peer::Verifier => {
                self.verifier.link = None;
                self.decoding = None;
            }
        }
    }

    /// Frees the session at `peer`.
    pub(crate) fn close(&mut self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter.link.take().map(Link::close),
            Peer::Verifier => self.verifier.link.take().map(Link::close),
        };
    }

    /// How often the session moved, as far as it concerns the output: to other drafters only where
    /// the draft model has a say in it.
    pub(crate) fn moves(&self) -> Moves {
        let method = &self.opener.request.method;
        let (drafter, verifier) = (self.drafter.moves, self.verifier.moves);
        if method.plan == Plan::DraftOnly {
            drafter
        } else if method.depends_on_draft() || method.verification == Verification::BlockGreedy {
            Moves {
                migrations: drafter.migrations + verifier.migrations,
                numerics_changed: drafter.numerics_changed || verifier.numerics_changed,
            }
        } else {
            verifier
        }
    }

    /// How often the session moved, whatever it means for the output.
    pub(crate) fn migrations(&self) -> u32 {
        self.drafter.moves.migrations + self.verifier.moves.migrations
    }

    /// Where `peer` was asked last.
    pub(crate) fn address(&self, peer: Peer) -> Option<SocketAddr> {
        match peer {
            Peer::Drafter => self.drafter.address(),
            Peer::Verifier => self.verifier.address(),
        }
    }

    /// Bytes exchanged with the peers so far.
    pub(crate) fn wire_bytes(&self) -> &WireBytes {
        &self.opener.wire_bytes
    }

    fn failed(&mut self, round: u64, peer: Peer, error: &PeerError) -> Input {
        self.abandon(peer);
        self.fault = Some(error.fault());
        let reason = error.to_string();
        tracing::debug!(round, ?peer, reason, "peer failed");
        if peer == Peer::Verifier && error.blames_proposals() {
            self.drafter.malformed();
            self.abandon(Peer::Drafter);
            return Input::Disbelieved { round, reason };
        }
        let retry = match error.failure() {
            PeerFailure::Overloaded { retry_after } => {
                return Input::Backpressure {
                    round,
                    peer,
                    retry_after,
                };
            }
            PeerFailure::Transient => true,
            PeerFailure::Permanent => false,
        };
        Input::Failed {
            round,
            peer,
            reason,
            retry,
        }
    }

    async fn decode(&mut self, ask: Ask<'_>, max_tokens: u32) -> Result<Input, PeerError> {
        let link = self.verifier.link(&mut self.opener, ask.timeout).await?;
        self.decoding = Some(Decoding::start(link, ask, max_tokens).await);
        self.next_decoded(ask).await
    }

    async fn next_decoded(&mut self, ask: Ask<'_>) -> Result<Input, PeerError> {
        // Decoding alone is one long round: it moves between two tokens.
        let moved = self.verifier.leave_draining(&mut self.opener, ask.timeout);
        if moved.await
            && let (Some(link), Some(decoding)) = (&mut self.verifier.link, &self.decoding)
        {
            let left = decoding.left(ask);
            self.decoding = Some(Decoding::start(link, ask, left).await);
        }
        let (Some(link), Some(decoding)) = (&mut self.verifier.link, &mut self.decoding) else {
            return Err(PeerError::NoneAlive { who: "verifier" });
        };
        let decoded = decoding.next(link, ask).await?;
        self.times.decoding = decoded.timing;
        Ok(Input::Decoded {
            round: ask.round,
            at: decoded.at,
            tokens: decoded.tokens,
        })
    }
}
