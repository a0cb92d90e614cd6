//! What computes the target model for a verifier's sessions: the engine of this process, which runs our runtime or
//! llama.cpp, or an engine elsewhere. Which one it is, is chosen once, when the verifier starts.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use grammar::Grammars;
use model::engine::EngineHandle;
use model::source::{SpecialTokens, TextEncoding};
use ops::process::Process;
use peer::progress::Reporter;
use peer::{Bounds, Cost, CountedHistory, Granted, HeldSession, Lent, PeerServer, RoundError};
use speculation::TokenId;
use speculation::certificate::Decided;
use speculation::constraint::Constraint;
use speculation::logprobs::TokenLogprobs;
use speculation::round::BlockInput;
use speculation::verification::LastToken;
use tokio::sync::mpsc;
use tonic::Status;
use wire::failure::Failure;
use wire::open::SessionSpec;
use wire::{pending, v1};

use crate::drafts::PendingDrafts;

/// A verifier with its model loaded and its engine running.
pub type Verifier = PeerServer<VerifierRole>;

/// A session of a verifier.
pub(crate) type VerifySession = HeldSession<VerifierRole>;

/// What a verifier tells of its target model's text, which the coordinator asks it for, and what computes the model.
pub struct VerifierRole {
    pub(crate) text: Arc<TextEncoding>,
    pub(crate) grammars: Arc<Grammars>,
    pub(crate) scorer: Arc<dyn Scorer>,
}

/// Computes the target model.
///
/// What it keeps of a session between rounds is in the session: the engine's keys and values in its slots, what an engine
/// elsewhere has seen in its memory.
#[tonic::async_trait]
pub(crate) trait Scorer: Send + Sync {
    /// Returns the numerics with which it computes now, where they may differ from those that the verifier began with.
    fn numerics(&self) -> Option<v1::Numerics> {
        None
    }

    /// Records that a coordinator, which expects these `numerics`, opened a stream for `session`; an empty text expects
    /// none.
    ///
    /// # Errors
    /// If the numerics are different by now.
    fn open(
        &self,
        verifier: &Verifier,
        _session: &mut VerifySession,
        numerics: &str,
    ) -> Result<(), Status> {
        verifier.computes(numerics)
    }

    /// Checks that `session` may ask for a round; `has_output` tells whether output precedes it.
    ///
    /// # Errors
    /// If the scorer has changed since the stream was opened, or does not serve the session's tenant.
    fn admit(&self, _session: &VerifySession, _has_output: bool) -> Result<(), Status> {
        Ok(())
    }

    /// Scores a draft block on top of the session's output and decides it. Returns the verdict, log probabilities of the
    /// emitted tokens if the session wants them, and the cost. `limit` bounds each request to an engine elsewhere.
    ///
    /// # Errors
    /// If the target cannot be computed, or what came with the block is malformed.
    async fn decide(
        &self,
        session: &mut VerifySession,
        block: BlockInput,
        progress: Reporter,
        limit: Duration,
    ) -> Result<(Decided, Cost), RoundError>;

    /// Scores a chain of draft tokens that the coordinator decides. Returns one slice for each position, and the cost.
    ///
    /// # Errors
    /// If the target cannot be computed, or whole rows are not to be had.
    async fn slices(
        &self,
        _session: &VerifySession,
        _drafts: &[TokenId],
        _request: v1::SliceRequest,
        _progress: Reporter,
    ) -> Result<(Vec<v1::Slice>, Cost), RoundError> {
        // Such sessions are not opened.
        let why = "the verifier has no whole rows to send";
        Err(RoundError::Other(Failure::NotOffered.status(why)))
    }

    /// Starts to decode; `run` reports the tokens as they come, and closes its channel at the end. The
    /// tokens are those of coupled verification, whatever the session's is. `limit` as in [`Self::decide`].
    ///
    /// # Errors
    /// If the scorer does not take what stands before the tokens.
    async fn decode(
        self: Arc<Self>,
        session: &mut VerifySession,
        run: DecodeRun,
        limit: Duration,
    ) -> Result<(), RoundError>;

    /// Scores tokens of the prompt, before any output. Returns the log probabilities of those that follow the tokens in
    /// `range`, and the cost. `limit` as in [`Self::decide`].
    ///
    /// # Errors
    /// If the target cannot be computed.
    async fn score_prompt(
        &self,
        session: &VerifySession,
        range: Range<usize>,
        progress: Reporter,
        limit: Duration,
    ) -> Result<(Vec<TokenLogprobs>, Cost), RoundError>;
}

/// The result of one forward of a decode.
pub(crate) struct DecodedForward {
    /// Its tokens: one, and the drafts accepted before it.
    pub(crate) tokens: Vec<TokenId>,
    /// Their log probabilities, if the session wants them.
    pub(crate) logprobs: Vec<TokenLogprobs>,
    pub(crate) cost: Cost,
    /// What became of drafts, if the round takes any.
    pub(crate) drafts: Option<v1::ForwardDrafts>,
}

/// The result that a decode reports for each forward.
pub(crate) type DecodeResult = Result<DecodedForward, RoundError>;

/// Decoding, with drafts as they come or without: where it stands, how far it may go, and where its tokens go.
pub(crate) struct DecodeRun {
    /// The pending drafts, if the decode takes any; they are returned to the session before the channel of results closes.
    pub(crate) drafts: Option<Lent<PendingDrafts>>,
    pub(crate) spec: Arc<SessionSpec>,
    /// Prompt (or start token) and output.
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) progress: Reporter,
    /// Most tokens still to come.
    left: u32,
    granted: Granted,
    /// Has room for all tokens, so that sending never waits.
    results: mpsc::Sender<DecodeResult>,
}

impl DecodeRun {
    /// Decodes at most `max_tokens` tokens after the session's output and `decoded`, as far as it is granted; `drafts` is
    /// what it is proposed. Returns the channel with its results, too.
    pub(crate) fn new(
        session: &VerifySession,
        decoded: &[TokenId],
        max_tokens: u32,
        granted: Granted,
        drafts: Option<Lent<PendingDrafts>>,
        progress: Reporter,
    ) -> (Self, mpsc::Receiver<DecodeResult>) {
        let (results, receiver) = mpsc::channel(max_tokens as usize + 1);
        let run = Self {
            drafts,
            spec: Arc::clone(&session.spec),
            tokens: session.sequence(decoded),
            progress,
            left: max_tokens,
            granted,
            results,
        };
        (run, receiver)
    }

    /// Returns the history of `session` after the output that the run begins with.
    pub(crate) fn history(&self, session: &VerifySession) -> CountedHistory {
        let mut history = session.history();
        history.follow(&self.tokens[self.spec.lead().len()..]);
        history
    }

    /// Returns the position of the next token.
    pub(crate) fn position(&self) -> u32 {
        (self.tokens.len() - self.spec.lead().len()) as u32
    }

    /// Takes the drafts that have come, and those that `constraint` forces, which is at the end of the output. Returns them, and how many in a row the next forward may accept; none if it may
    /// accept none.
    pub(crate) fn received(
        &mut self,
        constraint: Option<&dyn Constraint>,
    ) -> Option<(&mut PendingDrafts, u32)> {
        let granted = self.granted.until().saturating_sub(self.position());
        let lead = self.spec.lead().len();
        // A forward adds a token to the drafts that it accepts.
        let most = self.left.saturating_sub(1);
        let drafts = self.drafts.as_deref_mut()?;
        drafts.receive(&self.spec, (&self.tokens[lead..], constraint), most);
        let levels = most.min(granted.saturating_sub(1));
        (levels > 0).then_some((drafts, levels))
    }

    /// Adds the tokens of a forward to the output, and reports it. The first of them are `path` of the forward's drafts,
    /// `last` says what the last is. Returns whether another forward is to be made.
    pub(crate) fn push(
        &mut self,
        mut decoded: DecodedForward,
        (path, last): (&[u32], LastToken),
    ) -> bool {
        if let Some(drafts) = &mut self.drafts {
            let block = drafts.block().len() as u32;
            decoded.drafts = Some(v1::ForwardDrafts {
                scored: block,
                accepted: path.len() as u32,
                last: pending::last_of(block, last).into(),
                price: decoded.cost.step.price,
                ..drafts.follow(&decoded.tokens, path)
            });
        }
        let end = decoded.tokens.last();
        let ends = end.is_some_and(|end| self.spec.sampling.end_tokens.contains(end));
        self.tokens.extend_from_slice(&decoded.tokens);
        self.left -= decoded.tokens.len() as u32;
        self.report(Ok(decoded));
        !ends && self.left > 0 && self.position() < self.granted.until()
    }

    /// Reports a result. It is dropped if nobody waits any more; the run is then cancelled.
    pub(crate) fn report(&self, result: DecodeResult) {
        let _ = self.results.try_send(result);
    }

    /// Returns whether nobody waits for the tokens any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.results.is_closed()
    }

    /// Waits until nobody waits for the tokens any more.
    pub(crate) fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let results = self.results.clone();
        async move { results.closed().await }
    }
}

impl VerifierRole {
    /// Returns the role of a target model with this `text` that says `description` of itself.
    pub(crate) fn new(
        text: TextEncoding,
        description: &v1::PeerDescription,
        scorer: Arc<dyn Scorer>,
    ) -> Self {
        let (text, ends) = (Arc::new(text), description.eos_token_ids.clone());
        Self {
            grammars: peer::grammars(&text, description.vocab_size, ends),
            text,
            scorer,
        }
    }

    /// Returns the verifier of a target model that says `description` of itself. `load_time` is the model's name, and what
    /// it took to load; `engines` are those of this process that compute it.
    pub(crate) fn start(
        self,
        engines: Vec<EngineHandle>,
        description: v1::PeerDescription,
        load_time: (String, Duration),
        bounds: &Bounds,
        process: Process,
    ) -> Arc<Verifier> {
        let description = v1::PeerDescription {
            text_fingerprint: self.text_fingerprint(),
            ..description
        };
        let load_times = vec![load_time];
        PeerServer::new(self, engines, description, load_times, bounds, process)
    }

    /// Returns the fingerprint of tokenizer, chat template and special tokens, in hexadecimal. A coordinator fetches them
    /// again when it changes.
    fn text_fingerprint(&self) -> String {
        let TextEncoding {
            tokenizer_json,
            special_tokens,
            chat_template,
        } = &*self.text;
        let SpecialTokens { bos, eos } = special_tokens;
        let mut bytes = tokenizer_json.clone();
        for text in [chat_template, bos, eos] {
            let text = text.as_deref().unwrap_or_default();
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        format!("{:016x}", wire::describe::fingerprint(&bytes))
    }
}
