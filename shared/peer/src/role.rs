//! A drafter or a verifier: what each does in its own way, and what both hold.

use std::sync::Arc;

use grammar::{Grammar, Grammars};
use model::engine::{EngineHandle, EngineSlot, Rejected, Task};
use net::listen::ServerConfig;
use ops::health::Health;
use ops::metrics::PeerMetrics;
use ops::process::Process;
use ops::trace::{Span, Traces};
use speculation::TokenId;
use speculation::committed::Committed;
use speculation::history::History;
use speculation::proposal::BadProposal;
use tonic::Status;
use tonic::service::Routes;
use v1::round_answer::Part;
use v1::round_request::Round;
use v1::session_reply::Reply;
use wire::failure::Failure;
use wire::grammar::FIELD;
use wire::open::SessionSpec;
use wire::round::RoundKey;
use wire::status::BadField;
use wire::{status, v1};

use crate::context::RoundContext;
use crate::error::RoundError;
use crate::lease::Leases;
use crate::lent::{Lent, LentSlot};
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

    /// What it keeps of a session beside what every peer does.
    type Memory: Default + Send + 'static;

    /// Returns the compiler of grammars for the vocabulary of the session; none where no tokens of it are drawn.
    fn grammars(&self, _session: &SessionSpec) -> Option<&Arc<Grammars>> {
        None
    }

    /// Returns what `peer` is to sessions in the vocabulary of this fingerprint; none if that is what it says of itself.
    fn described(
        _peer: &PeerServer<Self>,
        _vocab_fingerprint: &[u8],
    ) -> Option<Arc<v1::PeerDescription>> {
        None
    }

    /// Checks that `session` may ask for a round; `has_output` tells whether output precedes it.
    ///
    /// # Errors
    /// If it may not.
    fn admit(
        _peer: &PeerServer<Self>,
        _session: &HeldSession<Self>,
        _has_output: bool,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// Answers one round, as far as it is granted, or says that it does no such rounds; `span` is the round's. It is
    /// dropped, at whatever it awaits, when the client is gone or closes the session, or another stream takes it.
    fn round(
        peer: &PeerServer<Self>,
        session: &mut HeldSession<Self>,
        round: Round,
        context: RoundContext<'_>,
        span: &mut Span,
    ) -> impl Future<Output = Result<(), RoundError>> + Send;

    /// Records that a coordinator, which expects these `numerics`, opened a stream for `session`; an empty text expects
    /// none.
    ///
    /// # Errors
    /// If the peer's numerics are different by now.
    fn opened(
        peer: &PeerServer<Self>,
        _session: &mut HeldSession<Self>,
        numerics: &str,
    ) -> Result<(), Status> {
        peer.computes(numerics)
    }

    /// Returns the status for a proposal that is no distribution, which says whose fault it is.
    fn bad_proposal(bad: &BadProposal) -> Status;

    /// Returns the gRPC service of `peer`.
    fn routes(peer: Arc<PeerServer<Self>>) -> Routes;
}

/// A drafter or a verifier, and what its streams share.
pub struct PeerServer<R: Role> {
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
    pub(crate) sessions: Arc<Leases<HeldSession<R>>>,
    /// Whether it takes sessions.
    pub health: Health,
    pub(crate) server: ServerConfig,
    pub(crate) process: Process,
}

impl<R: Role> PeerServer<R> {
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
pub struct HeldSession<R: Role> {
    /// What it was opened with.
    pub spec: Arc<SessionSpec>,
    /// Its output so far.
    pub committed: Committed,
    /// The models' keys and values, the largest model's first; freed with the session.
    pub slots: Vec<EngineSlot>,
    /// What was answered lately, for copies of a round.
    pub answers: ReplyCache<RoundKey, Vec<Part>>,
    /// What the role keeps.
    pub memory: R::Memory,
    history: LentSlot<History>,
    /// The session's grammar, once it is compiled.
    grammar: Option<Grammar>,
}

impl<R: Role> HeldSession<R> {
    /// Returns the session that was opened: `held` if it is the same, else a new one.
    pub(crate) fn resumed(peer: &PeerServer<R>, spec: SessionSpec, held: Option<Self>) -> Self {
        if let Some(session) = held.filter(|session| *session.spec == spec) {
            return session;
        }
        let engines = peer.engines.iter();
        Self {
            slots: engines
                .map(|engine| engine.new_slot_of(&spec.tenant))
                .collect(),
            spec: Arc::new(spec),
            committed: Committed::default(),
            answers: ReplyCache::default(),
            memory: R::Memory::default(),
            history: LentSlot::default(),
            grammar: None,
        }
    }

    /// Compiles the session's grammar, if it has one that is yet to be compiled.
    ///
    /// # Errors
    /// The reason why the grammar cannot be followed.
    pub(crate) async fn compile_grammar(&mut self, peer: &PeerServer<R>) -> Result<(), Status> {
        let spec = self.spec.sampling.grammar.clone();
        let grammars = peer
            .role
            .grammars(&self.spec)
            .filter(|_| self.grammar.is_none());
        if let (Some(spec), Some(grammars)) = (spec, grammars.cloned()) {
            // Compiling takes long enough to hold up an async thread.
            let compiling = tokio::task::spawn_blocking(move || grammars.compile(&spec));
            let compiled = compiling
                .await
                .map_err(|error| Failure::Internal.status(error.to_string()))?;
            let compiled = compiled.map_err(|error| BadField::new(FIELD, error.to_string()))?;
            self.grammar = Some(compiled);
        }
        Ok(())
    }

    /// Brings the output to where a round stands; false if the coordinator was told that too little is held.
    ///
    /// # Errors
    /// If the client is gone, or does not read.
    pub async fn advance(&mut self, context: &RoundContext<'_>) -> Result<bool, Status> {
        let round = &context.round;
        let advanced = self
            .committed
            .replace_from(round.from_len, &round.committed);
        let Err(need) = advanced else {
            return Ok(true);
        };
        let need = v1::NeedFrom {
            header: Some(round.reply_header(false)),
            from: need.from,
        };
        context.replies.send(Reply::NeedFrom(need)).await?;
        Ok(false)
    }

    /// Returns prompt (or start token), output and `drafts`: what a model's sequence must hold.
    pub fn sequence(&self, drafts: &[TokenId]) -> Vec<TokenId> {
        [self.spec.lead(), self.committed.tokens(), drafts].concat()
    }

    /// Takes the counts of the tokens of prompt and output. They are counted anew if a task of an earlier round, which
    /// was given up, still has them.
    pub fn history(&self) -> CountedHistory {
        let spec = &self.spec;
        let history = self.history.lock().take();
        let mut history = history.unwrap_or_else(|| {
            let grammar = self.grammar.as_ref().map(Grammar::start);
            History::new(&spec.sampling, &spec.prompt, &[]).under(grammar)
        });
        history.follow(self.committed.tokens());
        Lent::new(history, &self.history)
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

/// The history of a session, lent to the task of a round.
pub type CountedHistory = Lent<History>;
