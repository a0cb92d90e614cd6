//! A drafter or a verifier: what each does in its own way, what both hold, and where their replies go.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::engine::{EngineHandle, Rejected, Slot, Task};
use net::listen::ServerConfig;
use ops::health::Health;
use ops::metrics::PeerMetrics;
use ops::process::Process;
use ops::trace::Traces;
use speculation::TokenId;
use speculation::committed::Committed;
use speculation::history::History;
use speculation::proposal::BadProposal;
use tokio::sync::mpsc;
use tonic::Status;
use tonic::service::Routes;
use wire::failure::Failure;
use wire::open::SessionSpec;
use wire::round::RoundKey;
use wire::{status, v1};

use crate::granted::Granted;
use crate::lease::Leases;
use crate::replies::ReplyCache;

/// What a drafter or a verifier does in its own way, and what it needs for that.
pub trait Role: Sized + Send + Sync + 'static {
    /// What it is called in settings, metrics and traces.
    const NAME: &'static str;
    /// Full name of its gRPC service.
    const SERVICE: &'static str;
    /// What its model is called.
    const MODEL: &'static str;
    /// What a round of it ends in.
    const ANSWER: &'static str;

    /// From the coordinator.
    type Request: Send + 'static;
    /// To the coordinator.
    type Reply: Send + 'static;
    /// What is asked of a round.
    type Round: Send;
    /// What answers a round, kept for a retry.
    type Answer: Send + 'static;
    /// What it keeps of a session beside what every peer does.
    type Memory: Default + Send + 'static;

    /// Reads what a request asks; none of a later version's.
    fn read(request: Self::Request) -> Option<StreamRequest<Self::Round>>;

    /// Writes what is said as a reply.
    fn write(said: Said) -> Self::Reply;

    /// Answers one round, as far as it is granted. It is dropped, at whatever it awaits, when the client is gone or
    /// another stream takes the session.
    fn round(
        peer: &Peer<Self>,
        session: &mut Session<Self>,
        requested: Self::Round,
        granted: Granted,
        epoch: u32,
        replies: &Replies<Self::Reply>,
    ) -> impl Future<Output = Result<(), Status>> + Send;

    /// Records that a coordinator, which expects these `numerics`, opened a stream for `session`; an empty text expects
    /// none.
    ///
    /// # Errors
    /// If the peer's numerics are different by now.
    fn opened(
        peer: &Peer<Self>,
        _session: &mut Session<Self>,
        numerics: &str,
    ) -> Result<(), Status> {
        peer.computes(numerics)
    }

    /// Whose fault a proposal is that is none.
    fn bad_proposal(bad: &BadProposal) -> Status;

    /// The gRPC service of `peer`.
    fn routes(peer: Arc<Peer<Self>>) -> Routes;
}

/// What a coordinator asks on a session's stream.
#[derive(Debug)]
pub enum StreamRequest<Round> {
    /// That the session be opened.
    Open(Box<v1::Open>),
    /// A round.
    Round(Round),
    /// A grant: the current round may go on up to this position.
    Grant(u32),
    /// That the session be freed.
    Close,
}

/// What every peer says on a session's stream, its answers apart.
#[derive(Debug)]
pub enum Said {
    /// The session is open.
    Opened(v1::Opened),
    /// Too little is held.
    NeedFrom(v1::NeedFrom),
    /// How far the round is.
    Progress(v1::Progress),
    /// The session is freed.
    Closed(v1::Closed),
    /// The service is about to stop.
    Draining(v1::Draining),
}

/// A drafter or a verifier, and what its streams share.
pub struct Peer<R: Role> {
    /// What it needs for its own part.
    pub role: R,
    /// The engine of each model, the largest model's first.
    pub engines: Vec<EngineHandle>,
    /// What it says of itself.
    pub description: v1::PeerDescription,
    /// Where its spans go.
    pub traces: Traces,
    /// What it counts.
    pub metrics: PeerMetrics,
    pub(crate) sessions: Leases<Session<R>>,
    pub(crate) health: Health,
    pub(crate) server: ServerConfig,
    pub(crate) process: Process,
}

impl<R: Role> Peer<R> {
    /// Checks that the peer computes what a coordinator expects; an empty text expects nothing.
    ///
    /// # Errors
    /// If its own numerics are different: it was restarted after the coordinator had asked for them.
    pub fn computes(&self, numerics: &str) -> Result<(), Status> {
        let own = self.description.numerics.as_ref();
        if numerics.is_empty() || own.is_some_and(|own| own.weights == numerics) {
            return Ok(());
        }
        let problem = "this peer computes other numbers than when it was asked";
        Err(status::other_numerics(problem))
    }
}

/// What is kept of a session between rounds. All of it can be rebuilt from the next Open.
pub struct Session<R: Role> {
    /// What it was opened with.
    pub spec: Arc<SessionSpec>,
    /// Its output so far.
    pub committed: Committed,
    /// The models' keys and values, the largest model's first; freed with the session.
    pub slots: Vec<Slot>,
    /// What was answered lately.
    pub answers: ReplyCache<RoundKey, R::Answer>,
    /// What the role keeps.
    pub memory: R::Memory,
    pub(crate) history: HistoryHome,
}

impl<R: Role> Session<R> {
    /// Prompt (or start token), output and `drafts`: what a model's sequence must hold.
    pub fn sequence(&self, drafts: &[TokenId]) -> Vec<TokenId> {
        [self.spec.lead(), self.committed.tokens(), drafts].concat()
    }

    /// How often the tokens of prompt and output were seen.
    pub fn history(&self) -> CountedHistory {
        self.history.lend(&self.spec, self.committed.tokens())
    }

    /// Queues `task` on the largest model's engine.
    ///
    /// # Errors
    /// If its queue is full, or it has stopped.
    pub fn submit(&self, task: impl Task) -> Result<(), Rejected> {
        let slot = self.slots.first().ok_or(Rejected::Stopped)?;
        slot.try_submit(task)
    }
}

/// Replies buffered for one slow client before its stream is no longer read.
pub const REPLY_BUFFER: usize = 16;

/// How long a round waits for a client that is there and does not read, with the buffer full. No client
/// of ours does that: it reads until it gives the stream up.
pub const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Where a stream's replies go.
#[derive(Debug)]
pub struct Replies<R>(pub(crate) mpsc::Sender<Result<R, Status>>);

impl<R> Replies<R> {
    /// Sends a reply; waits for a while if the client does not read.
    ///
    /// # Errors
    /// If the client is gone, or reads nothing for a minute.
    pub async fn send(&self, reply: R) -> Result<(), Status> {
        match tokio::time::timeout(READ_TIMEOUT, self.0.send(Ok(reply))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Failure::Cancelled.status("the client is gone")),
            Err(_) => Err(Failure::Late.status("the client read none of its replies for a minute")),
        }
    }

    /// Sends a reply that may be lost: it is dropped if the client does not read, or is gone.
    pub fn offer(&self, reply: R) {
        let _dropped = self.0.try_send(Ok(reply));
    }
}

/// Where a session's history is between rounds; none while a task has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryHome(Arc<Mutex<Option<History>>>);

/// The history of a session, lent to the task of a round, after whose end it is at home again.
#[derive(Debug)]
pub struct CountedHistory {
    history: History,
    home: HistoryHome,
}

impl HistoryHome {
    /// The history of a session of `spec` after `output`. It is counted anew if a task of an earlier round, which
    /// was given up, still has it.
    pub(crate) fn lend(&self, spec: &SessionSpec, output: &[TokenId]) -> CountedHistory {
        let history = self.lock().take();
        let mut history =
            history.unwrap_or_else(|| History::new(&spec.sampling, &spec.prompt, &[]));
        history.follow(output);
        CountedHistory {
            history,
            home: self.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<History>> {
        // It is put there whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for CountedHistory {
    type Target = History;

    fn deref(&self) -> &History {
        &self.history
    }
}

impl DerefMut for CountedHistory {
    fn deref_mut(&mut self) -> &mut History {
        &mut self.history
    }
}

impl Drop for CountedHistory {
    fn drop(&mut self) {
        *self.home.lock() = Some(mem::take(&mut self.history));
    }
}
