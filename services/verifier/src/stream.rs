//! The rounds of one `Verify` stream.

mod block;
mod decode;
mod prompt;

use std::sync::Arc;

use net::MAX_MESSAGE_BYTES;
use ops::trace::Span;
use peer::{HeldSession, PeerServer, Role, RoundContext, RoundError};
use speculation::proposal::BadProposal;
use tonic::Status;
use tonic::service::Routes;
use wire::status::BadField;
use wire::v1::round_request::Round;
use wire::v1::verifier_server::VerifierServer;

use crate::config::ROLE;
use crate::remote::RemoteSession;
use crate::scorer::{Verifier, VerifierRole, VerifySession};
use crate::service::VerifierService;

/// What is asked of a round.
pub enum RoundRequest {
    /// That a block be decided, or its distributions sent.
    Block(Box<v1::VerifyRound>),
    /// That tokens be decoded without drafts.
    Decode(v1::DecodeRound),
    /// Asks for the log probabilities of the prompt.
    Score(v1::ScoreRound),
}

impl RoundRequest {
    /// Returns whether output precedes the round.
    fn has_output(&self) -> bool {
        let header = match self {
            Self::Block(round) => round.header(),
            Self::Decode(round) => round.header(),
            Self::Score(round) => round.header(),
        };
        header.is_some_and(|header| header.from_len > 0 || !header.committed.is_empty())
    }
}

impl Role for VerifierRole {
    const NAME: &'static str = ROLE;
    const SERVICE: &'static str = "outrider.v1.Verifier";
    const MODEL: &'static str = "target model";
    const ANSWER: &'static str = "verdict";

    type Request = v1::VerifyRequest;
    type Reply = v1::VerifyReply;
    type Round = RoundRequest;
    type Answer = v1::Verdict;
    type Memory = RemoteSession;

    fn read(request: v1::VerifyRequest) -> Option<StreamRequest<RoundRequest>> {
        Some(match request.request? {
            Request::Open(open) => StreamRequest::Open(open.into()),
            Request::Round(round) => StreamRequest::Round(RoundRequest::Block(round.into())),
            Request::Decode(round) => StreamRequest::Round(RoundRequest::Decode(round)),
            Request::Score(round) => StreamRequest::Round(RoundRequest::Score(round)),
            Request::Grant(grant) => StreamRequest::Grant(grant.until),
            Request::Close(_) => StreamRequest::Close,
        })
    }

    fn write(said: Said) -> v1::VerifyReply {
        reply(match said {
            Said::Opened(opened) => Reply::Opened(opened),
            Said::NeedFrom(need) => Reply::NeedFrom(need),
            Said::Progress(progress) => Reply::Progress(progress),
            Said::Closed(closed) => Reply::Closed(closed),
            Said::Draining(draining) => Reply::Draining(draining),
        })
    }

    async fn round(
        peer: &Peer<Self>,
        session: &mut Session<Self>,
        requested: RoundRequest,
        granted: Granted,
        epoch: u32,
        replies: &Replies<v1::VerifyReply>,
    ) -> Result<(), Status> {
        peer.role.scorer.admit(session, requested.has_output())?;
        match requested {
            RoundRequest::Block(requested) => {
                block::verify(peer, session, replies, *requested, epoch).await
            }
            RoundRequest::Decode(requested) => {
                decode::decode(peer, session, replies, requested, granted, epoch).await
            }
            RoundRequest::Score(requested) => {
                prompt::score(peer, session, replies, requested, granted, epoch).await
            }
            Round::Draft(_) => Err(BadField::new("round", "a verifier does not draft").into()),
        }
    }

    fn opened(
        peer: &PeerServer<Self>,
        session: &mut HeldSession<Self>,
        numerics: &str,
    ) -> Result<(), Status> {
        peer.role.scorer.open(peer, session, numerics)
    }

    /// It came with the round.
    fn bad_proposal(bad: &BadProposal) -> Status {
        BadField::new("proposals", bad.to_string()).into()
    }

    fn routes(peer: Arc<Peer<Self>>) -> Routes {
        let service = VerifierServer::new(VerifierService(peer));
        Routes::new(
            service
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
    }
}

/// Checks that the context has room for `more` tokens after `base_len` output tokens, before any of
/// them is stored.
fn check_room(
    verifier: &Verifier,
    session: &VerifySession,
    base_len: u32,
    more: usize,
) -> Result<(), RoundError> {
    let len = session.spec.lead().len() + base_len as usize + more;
    let context_len = verifier.description.context_len as usize;
    if len > context_len {
        return Err(RoundError::ContextFull { len, context_len });
    }
    Ok(())
}
