//! A round under way: what its peer was asked, and what came of that so far.

use fleet::CallError;
use speculation::TokenId;
use speculation::pending::ProposedTree;
use speculation::session::{Input, Request};
use wire::pending;
use wire::v1::Timing;
use wire::v1::round_answer::Part;
use wire::v1::session_request::Request as Message;

use super::draft::AwaitedDraft;
use super::parts::AwaitedParts;
use super::verify::AwaitedVerdict;
use super::{PeerAnswer, RoundProposals, Taken};
use crate::peer::exchange::{Exchange, Heard};
use crate::peer::opener::Opener;
use crate::peer::position::RoundPosition;
use crate::peer::proposals::DecodeProposals;
use crate::peer::session::PeerSession;

/// A round that a peer was asked.
#[derive(Debug)]
pub(crate) struct StartedRound {
    exchange: Exchange,
    awaited: Awaited,
}

/// What is to come of a round, and what came of it so far.
#[derive(Debug)]
enum Awaited {
    Draft(AwaitedDraft),
    Verify(AwaitedVerdict),
    Parts(AwaitedParts),
}

impl StartedRound {
    /// Asks the peer of `session` for what `request` says; `proposals` are what the drafter sent in this round.
    ///
    /// # Errors
    /// If no peer can be reached that does what the request needs, or it takes no block as long.
    pub(crate) async fn start(
        session: &mut PeerSession,
        opener: &mut Opener,
        request: &Request,
        position: RoundPosition<'_>,
        proposals: &RoundProposals,
    ) -> Result<Self, CallError> {
        let stream = session.ready(opener, position.deadline).await?;
        let admitted = &opener.request;
        let (round, awaited) = match request {
            Request::Draft {
                max_tokens,
                bonus_q,
            } => {
                let levels = (*max_tokens, *bonus_q);
                let (round, draft) = AwaitedDraft::of(stream, admitted, position, levels)?;
                (round, Awaited::Draft(draft))
            }
            Request::Verify {
                drafts,
                horizon,
                layers,
            } => {
                let block = (drafts, *horizon, &layers[..]);
                let (round, verdict) = AwaitedVerdict::of(stream, admitted, block, proposals)?;
                (round, Awaited::Verify(verdict))
            }
            Request::Decode { max_tokens } => {
                let (round, parts) = AwaitedParts::of_decoding(position, *max_tokens, admitted);
                (round, Awaited::Parts(parts))
            }
            Request::Score { from } => {
                let end = admitted.decoder_prefix_len().saturating_sub(1);
                let (round, parts) =
                    AwaitedParts::of_prompt(*from, end as u32, admitted.scores_ahead);
                (round, Awaited::Parts(parts))
            }
        };
        Ok(Self {
            exchange: Exchange::start(stream, position, round).await,
            awaited,
        })
    }

    /// Returns the peer's answer, the next part of it, its progress, or all slices that the coordinator decides from. The
    /// client took all parts before, and `position` holds the output as it is by now. Between two forwards of a decode the
    /// round moves off a peer that is about to stop; `beside` is what it is proposed.
    ///
    /// # Errors
    /// If the stream breaks, or what comes cannot be right.
    pub(crate) async fn next(
        &mut self,
        session: &mut PeerSession,
        opener: &mut Opener,
        mut beside: Option<&mut DecodeProposals>,
        position: RoundPosition<'_>,
    ) -> Result<Taken, CallError> {
        let progress = Input::Progress {
            round: position.round,
            peer: session.peer,
        };
        let progress = Taken::Answer(PeerAnswer::new(progress, Timing::default()));
        if let Awaited::Parts(parts) = &mut self.awaited {
            let decoded = position.output.len().saturating_sub(self.exchange.base_len);
            if let Some(max_tokens) = parts.left(decoded as u32)
                && session.leave_draining(opener, position.deadline).await
            {
                let left = Request::Decode { max_tokens };
                let none = RoundProposals::default();
                *self = Self::start(session, opener, &left, position, &none).await?;
                if let Some(beside) = beside {
                    beside.begins(opener);
                }
                return Ok(progress);
            }
            if let Some(renewal) = parts.renewed(position) {
                session.stream()?.send(renewal.request).await;
                if renewal.was_awaited {
                    return Ok(progress);
                }
            }
        }
        let (stream, request) = (session.stream()?, &opener.request);
        if let Some(beside) = &mut beside {
            for proposed in beside.next(opener, position.output).await {
                if !stream.offer(Message::Append(pending::to_wire(proposed))) {
                    beside.lane.lost();
                }
            }
        }
        loop {
            let reply = tokio::select! {
                biased;
                reply = stream.receive() => reply?,
                proposed = drafted(beside.as_deref_mut(), position.output) => {
                    let is_sent = stream.offer(Message::Append(pending::to_wire(proposed)));
                    if let (Some(beside), false) = (&mut beside, is_sent) {
                        beside.lane.lost();
                    }
                    continue;
                }
            };
            let part = match self.exchange.take(reply, stream, position).await? {
                Heard::Nothing => continue,
                Heard::Progress => return Ok(progress),
                Heard::Part(part) => part,
            };
            if let (Part::Decoded(decoded), Some(beside)) = (&part, &mut beside) {
                beside.lane.decided(decoded);
            }
            let taken = match &mut self.awaited {
                Awaited::Draft(draft) => draft.take(part, position.round, request),
                Awaited::Verify(verdict) => verdict.take(part, position, request),
                Awaited::Parts(parts) => parts.take(part, position.round, request),
            };
            if let Some(taken) = taken.map_err(|problem| stream.malformed(problem))? {
                // A round before any output leaves none to be held.
                session.succeeded(self.exchange.base_len.min(position.emitted));
                return Ok(taken);
            }
        }
    }
}

/// Returns what a drafter proposes to a decode on top of `output`; never, where none does.
async fn drafted(beside: Option<&mut DecodeProposals>, output: &[TokenId]) -> ProposedTree {
    match beside {
        Some(beside) => beside.drafted(output).await,
        None => std::future::pending().await,
    }
}
