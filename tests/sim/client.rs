//! The coordinator's side: the session, and what a driver does for it.

use speculation::proposal::Proposal;
use speculation::session::{Action, Input, Peer, Request, Session};

use crate::case::Case;
use crate::message::{Answer, Ask, Reply};

/// A request to a peer that is under way.
#[derive(Debug)]
struct PendingRequest {
    round: u64,
    base_len: usize,
    /// Where the tokens began that were sent with it.
    from_len: usize,
    request: Request,
}

/// A session with its links.
pub(crate) struct Client {
    pub(crate) session: Session,
    /// See [`Case::ahead`].
    ahead: u32,
    /// Position up to which the decode under way is granted.
    granted: u32,
    requested: Option<PendingRequest>,
    /// Output tokens each peer is believed to hold.
    held: [usize; 2],
    /// The round that was drafted last, and the distributions of its block.
    drafted: (u64, Vec<Proposal>),
    /// For each peer, whether its latest answer came from the peer that replaces it; none before its first answer.
    was_another: [Option<bool>; 2],
}

impl Client {
    /// A client whose request begins at time 0.
    pub(crate) fn new(case: &Case) -> Self {
        Self {
            session: Session::new(case.session_config()),
            ahead: case.ahead,
            granted: 0,
            requested: None,
            held: [0; 2],
            drafted: (0, Vec::new()),
            was_another: [None; 2],
        }
    }

    /// Carries out an action; the request to send, if it is one.
    pub(crate) fn carry_out(&mut self, action: &Action) -> Option<(Peer, Ask)> {
        match action {
            Action::Send {
                round,
                base_len,
                request,
                ..
            } => {
                self.requested = Some(PendingRequest {
                    round: *round,
                    base_len: *base_len as usize,
                    from_len: 0,
                    request: request.clone(),
                });
                self.ask()
            }
            Action::Close(_) => {
                self.requested = None;
                None
            }
            Action::Emit(_) | Action::EmitScores { .. } | Action::Finish(_) => None,
        }
    }

    /// The message for the request under way.
    fn ask(&mut self) -> Option<(Peer, Ask)> {
        let requested = self.requested.as_mut()?;
        let peer = requested.request.peer();
        requested.from_len = self.held[peer as usize].min(requested.base_len);
        let proposals = match &requested.request {
            Request::Verify { .. } if self.drafted.0 == requested.round => self.drafted.1.clone(),
            _ => Vec::new(),
        };
        self.granted = requested.base_len as u32 + self.ahead;
        let ask = Ask {
            round: requested.round,
            from_len: requested.from_len,
            committed: self.session.output()[requested.from_len..requested.base_len].to_vec(),
            request: requested.request.clone(),
            proposals,
            granted: self.granted,
        };
        Some((peer, ask))
    }

    /// Returns how far the verifier may go on, once half of what it was granted is taken.
    pub(crate) fn renew(&mut self) -> Option<u32> {
        let taken = self.session.output().len() as u32;
        let requested = &self.requested.as_ref()?.request;
        let decodes = matches!(requested, Request::Decode { .. });
        if !decodes || self.granted.saturating_sub(taken) > self.ahead / 2 {
            return None;
        }
        self.granted = taken + self.ahead;
        Some(self.granted)
    }

    /// What the session must be told of a reply, stale ones included, or else the request to send
    /// again with earlier tokens.
    pub(crate) fn hear(&mut self, peer: Peer, reply: Reply) -> Heard {
        let current = self
            .requested
            .as_ref()
            .filter(|requested| requested.round == reply.round && requested.request.peer() == peer);
        match (&reply.answer, current) {
            // Every repetition begins earlier, so there is an end to them.
            (Answer::NeedFrom(from), Some(requested)) if (*from as usize) < requested.from_len => {
                self.held[peer as usize] = *from as usize;
                return self.ask().map_or(Heard::Nothing, Heard::Again);
            }
            (Answer::Drafted { proposals, .. }, Some(requested)) => {
                self.held[peer as usize] = requested.base_len;
                if matches!(requested.request, Request::Draft { .. }) {
                    self.drafted = (reply.round, proposals.clone());
                }
            }
            (
                Answer::Verified { .. } | Answer::Decoded { .. } | Answer::Scored { .. },
                Some(requested),
            ) => {
                self.held[peer as usize] = requested.base_len;
            }
            _ => {}
        }
        let is_current = current.is_some();
        let Some(input) = reply.answer.into_input(peer, reply.round) else {
            return Heard::Nothing;
        };
        let mut changed = false;
        if is_current {
            let before = self.was_another[peer as usize].replace(reply.is_of_another);
            changed = before.is_some_and(|before| before != reply.is_of_another);
        }
        Heard::Input(input, changed)
    }
}

/// What a reply means to the client.
pub(crate) enum Heard {
    /// What the session is told, and whether it must be told before that the peer computes other numbers.
    Input(Input, bool),
    Again((Peer, Ask)),
    Nothing,
}
