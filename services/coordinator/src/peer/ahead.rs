//! A drafter beside a target that decodes: it drafts ahead, on a session and a task of its own, so that nothing waits for
//! it. It may be slow, silent, lost or moved; the request does not notice.

use std::time::{Duration, Instant};

use fleet::CallError;
use speculation::TokenId;
use speculation::pending::{ProposedTree, ROOM};
use speculation::session::Peer;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use v1::round_answer::Part;
use v1::round_request::Round;
use v1::session_request::Request;
use wire::status::PeerFailure;
use wire::{pending, v1};

use super::exchange::{Exchange, Heard, UNASKED};
use super::opener::Opener;
use super::position::{Deadline, RoundPosition};
use super::session::{FailureKind, PeerSession};

/// Levels that are drafted past the output, if the request sets no limit.
const HORIZON: u32 = 32;

/// Draft tokens past the output: with fewer, a drafter a tenth of a second away has to wait.
const NODES: u32 = 400;

/// How long nothing is tried after a drafter was lost: the first time, and at most.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a drafter is told of the decode.
#[derive(Debug, Default)]
struct Known {
    output: Vec<TokenId>,
    /// Draft tokens that the verifier has room for.
    room: u32,
    /// Least survival of a draft token that is worth its way.
    price: f32,
}

/// A drafter that drafts ahead of a decode.
#[derive(Debug)]
pub(super) struct AheadDrafter {
    known: watch::Sender<Known>,
    proposals: mpsc::Receiver<ProposedTree>,
    task: JoinHandle<()>,
}

impl AheadDrafter {
    /// Starts to draft ahead for the request of `opener`.
    pub(super) fn start(opener: Opener) -> Self {
        let (known, told) = watch::channel(Known {
            room: ROOM as u32,
            ..Known::default()
        });
        // Each proposal has a new draft token, of which there are never as many on their way.
        let (sender, proposals) = mpsc::channel(ROOM);
        Self {
            known,
            proposals,
            task: tokio::spawn(run(opener, told, sender)),
        }
    }

    /// Tells what the output is by now, how many draft tokens there is room for, and what one must be worth.
    pub(super) fn tell(&self, output: &[TokenId], room: u32, price: f32) {
        self.known.send_if_modified(|known| {
            let new = output.get(known.output.len()..).unwrap_or_default();
            known.output.extend_from_slice(new);
            (known.room, known.price) = (room, price);
            !new.is_empty()
        });
    }

    /// Returns the next proposal, once one has come; never, if none will.
    pub(super) async fn proposed(&mut self) -> ProposedTree {
        match self.proposals.recv().await {
            Some(proposed) => proposed,
            None => std::future::pending().await,
        }
    }
}

impl Drop for AheadDrafter {
    fn drop(&mut self) {
        // Its stream is dropped with it, which frees the session at the drafter.
        self.task.abort();
    }
}

/// Has one drafter after the other draft, until none can.
async fn run(
    mut opener: Opener,
    mut known: watch::Receiver<Known>,
    proposals: mpsc::Sender<ProposedTree>,
) {
    let mut session = PeerSession::new(Peer::Drafter);
    let mut pause = PAUSE;
    loop {
        let began = Instant::now();
        let error = match draft(&mut session, &mut opener, &mut known, &proposals).await {
            // It moved.
            Ok(()) => continue,
            Err(error) => error,
        };
        let details = error.details();
        tracing::debug!(error = details, "a drafter that drafts ahead is lost");
        session.give_up(FailureKind::of(&error));
        let will_do = error.failure() != PeerFailure::Permanent || error.is_outdated();
        if !will_do && !matches!(error, CallError::NoneAlive(..)) {
            return;
        }
        if began.elapsed() > LONGEST_PAUSE {
            pause = PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Has a drafter draft; returns when the session has moved to another.
async fn draft(
    session: &mut PeerSession,
    opener: &mut Opener,
    known: &mut watch::Receiver<Known>,
    proposals: &mpsc::Sender<ProposedTree>,
) -> Result<(), CallError> {
    let limit = opener.request.draft_timeout;
    let deadline = || Deadline::at_most(limit, limit);
    let stream = session.ready(opener, deadline()).await?;
    let output = known.borrow_and_update().output.clone();
    let position = RoundPosition {
        round: 1,
        deadline: deadline(),
        output: &output,
        emitted: output.len(),
        worth: None,
        trace: None,
    };
    let most = opener.request.method.draft_most;
    let round = Round::Ahead(v1::AheadRound {
        horizon: most.map_or(HORIZON, |most| most.clamp(1, HORIZON)),
        nodes: NODES,
    });
    let mut exchange = Exchange::start(stream, position, round).await;
    let mut sent = output.len();
    if let Some(commit) = commit(known, sent) {
        sent += commit.token_ids.len();
        stream.send(Request::Commit(commit)).await;
    }
    loop {
        let stream = session.stream()?;
        tokio::select! {
            reply = stream.receive() => {
                match exchange.take(reply?, stream, position).await? {
                    Heard::Part(Part::Proposed(proposed)) => {
                        let proposed = pending::from_wire(proposed);
                        let proposed = proposed.map_err(|bad| stream.malformed(bad.to_string()))?;
                        if proposals.try_send(proposed).is_err() {
                            return Err(stream.malformed("it drafts more than it was asked for"));
                        }
                        session.succeeded(sent);
                    }
                    Heard::Part(_) => return Err(stream.malformed(UNASKED)),
                    Heard::Progress | Heard::Nothing => {}
                }
            }
            told = known.changed() => {
                if told.is_err() {
                    // The request is over, and this task about to be.
                    return std::future::pending().await;
                }
                if let Some(commit) = commit(known, sent) {
                    let tokens = commit.token_ids.len();
                    // What finds no place is told with the next.
                    if stream.offer(Request::Commit(commit)) {
                        sent += tokens;
                    }
                }
            }
        }
        if session.leave_draining(opener, deadline()).await {
            return Ok(());
        }
    }
}

/// Returns what is to be told beyond the first `sent` tokens of the output.
fn commit(known: &mut watch::Receiver<Known>, sent: usize) -> Option<v1::Commit> {
    let known = known.borrow_and_update();
    Some(v1::Commit {
        from: sent as u32,
        token_ids: known.output.get(sent..)?.to_vec(),
        credit: known.room,
        price: known.price,
    })
}
