//! The rounds of one `Verify` stream.

mod block;
mod decode;
mod prompt;

use std::sync::Arc;

use grammar::Grammars;
use net::MAX_MESSAGE_BYTES;
use ops::trace::Span;
use peer::{HeldSession, PeerServer, Role, RoundContext, RoundError};
use speculation::proposal::BadProposal;
use tonic::Status;
use tonic::service::Routes;
use wire::open::SessionSpec;
use wire::status::BadField;
use wire::v1::round_request::Round;
use wire::v1::verifier_server::VerifierServer;

use crate::config::ROLE;
use crate::remote::RemoteSession;
use crate::scorer::{Verifier, VerifierRole, VerifySession};
use crate::service::VerifierService;

impl Role for VerifierRole {
    const NAME: &'static str = ROLE;
    const SERVICE: &'static str = "outrider.v1.Verifier";
    const MODEL: &'static str = "target model";
    const ANSWER: &'static str = "verdict";

    type Memory = RemoteSession;

    fn grammars(&self, _session: &SessionSpec) -> Option<&Arc<Grammars>> {
        Some(&self.grammars)
    }

    fn admit(
        peer: &PeerServer<Self>,
        session: &HeldSession<Self>,
        has_output: bool,
    ) -> Result<(), Status> {
        peer.role.scorer.admit(session, has_output)
    }

    async fn round(
        peer: &PeerServer<Self>,
        session: &mut HeldSession<Self>,
        round: Round,
        context: RoundContext<'_>,
        span: &mut Span,
    ) -> Result<(), RoundError> {
        match round {
            Round::Verify(requested) => {
                block::verify(peer, session, requested, &context, span).await
            }
            Round::Decode(requested) => {
                decode::decode(peer, session, requested, context, span).await
            }
            Round::Score(requested) => {
                prompt::score(peer, session, requested, &context, span).await
            }
            Round::Draft(_) | Round::Ahead(_) => {
                Err(BadField::new("round", "a verifier does not draft").into())
            }
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

    fn routes(peer: Arc<PeerServer<Self>>) -> Routes {
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
