//! The streams of one request to its peers, and what is asked on them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use speculation::TokenId;
use speculation::session::{Input, Peer, Plan, Request};
use wire::status::PeerFailure;
use wire::v1;

use crate::attachment::{Attachment, Moves, Opener};
use crate::error::PeerError;
use crate::exchange::{self, Ask, Decoding, Laws};
use crate::link::{Drafting, Link, Verifying};
use crate::request::CheckedRequest;

/// The streams of one request to its peers.
pub(crate) struct PeerLinks {
    opener: Opener,
    drafter: Attachment<Drafting>,
    verifier: Attachment<Verifying>,
    /// Laws of the draft block under way, for the verifier.
    proposals: Vec<v1::Proposal>,
    decoding: Option<Decoding>,
    pub(crate) times: RoundTimes,
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
    pub(crate) fn new(request: Arc<CheckedRequest>, session_id: [u8; 16]) -> Self {
        Self {
            opener: Opener::new(request, session_id),
            drafter: Attachment::default(),
            verifier: Attachment::default(),
            proposals: Vec::new(),
            decoding: None,
            times: RoundTimes::default(),
        }
    }

    /// Sends `request` to its peer and awaits the answer, as input for the session. A decode round
    /// gives its first tokens; [`PeerLinks::decoded`] gives the next. The caller stops waiting after
    /// `patience`, and the peer is told so.
    pub(crate) async fn ask(
        &mut self,
        round: u64,
        output: &[TokenId],
        request: &Request,
        patience: Duration,
    ) -> Input {
        let ask = Ask {
            round,
            timeout: patience,
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
    pub(crate) async fn decoded(
        &mut self,
        round: u64,
        output: &[TokenId],
        patience: Duration,
    ) -> Input {
        let ask = Ask {
            round,
            timeout: patience,
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
    /// the draft model makes it.
    pub(crate) fn moves(&self, plan: Plan) -> Moves {
        match plan {
            Plan::DraftOnly => self.drafter.moves,
            Plan::Speculative | Plan::TargetOnly => self.verifier.moves,
        }
    }

    fn failed(&mut self, round: u64, peer: Peer, error: &PeerError) -> Input {
        self.abandon(peer);
        let reason = error.to_string();
        tracing::debug!(round, ?peer, reason, "peer failed");
        if peer == Peer::Verifier && error.blames_proposals() {
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

    async fn draft(&mut self, ask: Ask<'_>, max_tokens: u32) -> Result<Input, PeerError> {
        let link = self.drafter.link(&mut self.opener, ask.timeout).await?;
        let max_tokens = max_tokens.min(link.max_draft_tokens);
        let request = &self.opener.request;
        let form = request.method.proposal_form(request.sampling.temperature);
        let laws = Laws {
            form,
            vocab_size: request.vocab_size,
        };
        let drafted = exchange::draft(link, ask, max_tokens, laws).await?;
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
        let link = self.verifier.link(&mut self.opener, ask.timeout).await?;
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
        let link = self.verifier.link(&mut self.opener, ask.timeout).await?;
        self.decoding = Some(Decoding::start(link, ask, max_tokens).await);
        self.next_decoded(ask).await
    }

    async fn next_decoded(&mut self, ask: Ask<'_>) -> Result<Input, PeerError> {
        let (Some(link), Some(decoding)) = (&mut self.verifier.link, &mut self.decoding) else {
            return Err(PeerError::NoneAlive { who: "verifier" });
        };
        let decoded = decoding.next(link, ask).await?;
        Ok(Input::Decoded {
            round: ask.round,
            at: decoded.at,
            tokens: decoded.tokens,
        })
    }
}
