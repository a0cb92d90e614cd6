//! The streams of one request to its peers: opened when first needed, dropped when they fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use speculation::TokenId;
use speculation::session::{Input, Peer, Request};
use wire::status::PeerFailure;
use wire::v1;

use crate::error::PeerError;
use crate::exchange::{self, Ask, Decoding};
use crate::link::{Drafting, Link, Verifying};
use crate::request::CheckedRequest;

/// The streams of one request to its peers.
pub(crate) struct PeerLinks {
    request: Arc<CheckedRequest>,
    session_id: [u8; 16],
    timeout: Duration,
    drafter: Option<Link<Drafting>>,
    verifier: Option<Link<Verifying>>,
    /// Streams opened so far; the epoch of the latest.
    epoch: u32,
    /// Laws of the draft block under way, for the verifier.
    proposals: Vec<v1::Proposal>,
    decoding: Option<Decoding>,
    /// Where the verifier's numbers come from, as of the first one used.
    numerics: Option<v1::Numerics>,
    verifier_address: Option<String>,
    pub(crate) moved: Moves,
    pub(crate) times: RoundTimes,
}

/// What became of the request's verifier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moves {
    /// Times the session went to another replica.
    pub(crate) migrations: u32,
    /// Whether one of them computes other bits.
    pub(crate) numerics_changed: bool,
}

/// Where the time of the round under way went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTimes {
    pub(crate) draft: Duration,
    pub(crate) verify: Duration,
    pub(crate) drafter: v1::Timing,
    pub(crate) verifier: v1::Timing,
}

impl PeerLinks {
    pub(crate) fn new(
        request: Arc<CheckedRequest>,
        session_id: [u8; 16],
        timeout: Duration,
    ) -> Self {
        Self {
            request,
            session_id,
            timeout,
            drafter: None,
            verifier: None,
            epoch: 0,
            proposals: Vec::new(),
            decoding: None,
            numerics: None,
            verifier_address: None,
            moved: Moves::default(),
            times: RoundTimes::default(),
        }
    }

    /// Sends `request` to its peer and awaits the answer, as input for the session. A decode round
    /// gives its first tokens; [`PeerLinks::decoded`] gives the next.
    pub(crate) async fn ask(&mut self, round: u64, output: &[TokenId], request: &Request) -> Input {
        let ask = Ask {
            round,
            timeout: self.timeout,
            output,
        };
        let began = Instant::now();
        let answered = match request {
            Request::Draft { max_tokens } => self.draft(ask, *max_tokens).await,
            Request::Verify { drafts } => self.verify(ask, drafts.clone()).await,
            Request::Decode { max_tokens } => self.decode(ask, *max_tokens).await,
        };
        match request.peer() {
            Peer::Drafter => self.times.draft = began.elapsed(),
            Peer::Verifier => self.times.verify = began.elapsed(),
        }
        answered.unwrap_or_else(|error| self.failed(round, request.peer(), &error))
    }

    /// The next tokens of the decode round under way.
    pub(crate) async fn decoded(&mut self, round: u64, output: &[TokenId]) -> Input {
        let ask = Ask {
            round,
            timeout: self.timeout,
            output,
        };
        match self.next_decoded(ask).await {
            Ok(input) => input,
            Err(error) => self.failed(round, Peer::Verifier, &error),
        }
    }

    /// Gives up what is under way with a `peer` that did not answer in time. Whoever connects and
    /// says nothing is left alone for a while, so that a retry goes elsewhere.
    pub(crate) fn silent(&mut self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter.as_ref().map(Link::silent),
            Peer::Verifier => self.verifier.as_ref().map(Link::silent),
        };
        self.abandon(peer);
    }

    /// Drops the stream to `peer`.
    fn abandon(&mut self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter = None,
            Peer::Verifier => {
                self.verifier = None;
                self.decoding = None;
            }
        }
    }

    /// Frees the session at `peer`.
    pub(crate) fn close(&mut self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter.take().map(Link::close),
            Peer::Verifier => self.verifier.take().map(Link::close),
        };
    }

    fn failed(&mut self, round: u64, peer: Peer, error: &PeerError) -> Input {
        self.abandon(peer);
        let reason = error.to_string();
        tracing::debug!(round, ?peer, reason, "peer failed");
        if peer == Peer::Verifier && error.blames_proposals() {
            return Input::Disbelieved { round, reason };
        }
        match error.failure() {
            PeerFailure::Overloaded { retry_after } => Input::Backpressure {
                round,
                peer,
                retry_after,
            },
            PeerFailure::Transient => Input::Failed {
                round,
                peer,
                reason,
                retry: true,
            },
            PeerFailure::Permanent => Input::Failed {
                round,
                peer,
                reason,
                retry: false,
            },
        }
    }

    async fn draft(&mut self, ask: Ask<'_>, max_tokens: u32) -> Result<Input, PeerError> {
        let link = match &mut self.drafter {
            Some(link) => link,
            none => {
                let picked = self.request.group.drafter(&self.session_id).await?;
                self.epoch += 1;
                let open = self
                    .request
                    .open(self.session_id, self.epoch, &picked.1.model);
                none.insert(Link::open(&picked, open, self.timeout).await?)
            }
        };
        let drafted = exchange::draft(link, ask, max_tokens).await?;
        self.proposals = drafted.proposals;
        self.times.drafter = drafted.timing;
        Ok(Input::Drafted {
            round: ask.round,
            tokens: drafted.tokens,
        })
    }

    async fn verify(&mut self, ask: Ask<'_>, drafts: Vec<TokenId>) -> Result<Input, PeerError> {
        // Kept until the round is over: a retry sends them again.
        let proposals = if drafts.is_empty() {
            Vec::new()
        } else {
            self.proposals.clone()
        };
        let link = self.verifier().await?;
        let (verdict, timing) = exchange::verify(link, ask, drafts, proposals).await?;
        self.times.verifier = timing;
        Ok(Input::Verified {
            round: ask.round,
            emitted: verdict.emitted,
            accepted: verdict.accepted,
            last: verdict.last,
        })
    }

    async fn decode(&mut self, ask: Ask<'_>, max_tokens: u32) -> Result<Input, PeerError> {
        let link = self.verifier().await?;
        self.decoding = Some(Decoding::start(link, ask, max_tokens).await);
        self.next_decoded(ask).await
    }

    async fn next_decoded(&mut self, ask: Ask<'_>) -> Result<Input, PeerError> {
        let (Some(link), Some(decoding)) = (&mut self.verifier, &mut self.decoding) else {
            return Err(PeerError::NoneAlive { who: "verifier" });
        };
        let decoded = decoding.next(link, ask).await?;
        Ok(Input::Decoded {
            round: ask.round,
            at: decoded.at,
            tokens: decoded.tokens,
        })
    }

    async fn verifier(&mut self) -> Result<&mut Link<Verifying>, PeerError> {
        match &mut self.verifier {
            Some(link) => Ok(link),
            none => {
                let picked = self.request.group.verifier(&self.session_id).await?;
                self.epoch += 1;
                let open = self
                    .request
                    .open(self.session_id, self.epoch, &picked.1.model);
                let link = Link::open(&picked, open, self.timeout).await?;
                let (endpoint, description) = picked;
                let numerics = description.numerics.clone().unwrap_or_default();
                let before = self.numerics.get_or_insert_with(|| numerics.clone());
                self.moved.numerics_changed |= *before != numerics;
                let address = endpoint.address().to_owned();
                let before = self.verifier_address.replace(address.clone());
                self.moved.migrations += u32::from(before.is_some_and(|before| before != address));
                Ok(none.insert(link))
            }
        }
    }
}
