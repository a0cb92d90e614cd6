//! Drafting one block with the draft model, on the engine thread: one token a forward.

use std::sync::Arc;

use model::engine::{StepRows, Task, TaskError, TaskProgress};
use model::head::{AcceptanceHead, HeadScratch};
use peer::progress::Reporter;
use peer::{Cost, CountedHistory, RoundError};
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::drafting::policies::Reads;
use speculation::drafting::{self, Stopping, TreeShape};
use speculation::noise::InnerCall;
use speculation::pipeline::{DistributionError, Pipeline, Want};
use speculation::real::Real;
use tokio::sync::mpsc;
use wire::open::SessionSpec;
use wire::v1::StopCause;

use crate::block::{BlockEnd, DraftNode, DraftStep};
use crate::draft_params::DraftParams;
use crate::proposers::DraftSession;

/// Drafts one block.
pub(crate) struct DraftTask {
    spec: Arc<SessionSpec>,
    requested: DraftParams,
    pipeline: Pipeline,
    history: CountedHistory,
    chance: RoundChance,
    want: Want,
    unscaled: Vec<f32>,
    stopping: Stopping,
    /// Predicts whether tokens are accepted; for a learned stop rule.
    head: Option<Arc<AcceptanceHead>>,
    scratch: HeadScratch,
    /// Whether the stop rule ended the block; then only the distribution after it is wanted.
    has_stopped: bool,
    /// Prompt (or start token), output and the tokens drafted so far.
    tokens: Vec<TokenId>,
    base_len: u32,
    drafted: u32,
    forwards: Vec<u32>,
    progress: Reporter,
    /// Has room for the whole block, so that sending never waits.
    reports: mpsc::Sender<Result<DraftStep, RoundError>>,
}

impl DraftTask {
    /// Returns a task that drafts what is asked after the session's output, with the channel on which it reports; the
    /// channel closes when the block is done. `head` is the acceptance head of a learned stop rule. How far it is goes
    /// to `progress`.
    pub(crate) fn new(
        session: &DraftSession,
        requested: DraftParams,
        head: Option<Arc<AcceptanceHead>>,
        progress: Reporter,
    ) -> (Self, mpsc::Receiver<Result<DraftStep, RoundError>>) {
        let (reports, receiver) = mpsc::channel(requested.max_tokens as usize + 1);
        let (spec, output) = (&session.spec, session.committed.tokens());
        let base_len = output.len() as u32;
        let mut tokens = session.sequence(&[]);
        tokens.reserve(requested.max_tokens as usize);
        let task = Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: session.history(),
            chance: RoundChance::new(spec.noise, base_len, InnerCall::default()),
            want: want(spec, &requested),
            unscaled: Vec::new(),
            stopping: Stopping::new(requested.stop_rule),
            head,
            scratch: HeadScratch::default(),
            has_stopped: false,
            spec: Arc::clone(spec),
            requested,
            tokens,
            base_len,
            drafted: 0,
            forwards: vec![0; session.slots.len()],
            progress,
            reports,
        };
        (task, receiver)
    }

    /// Draws the next token from the logits `row`, or ends the block before it.
    fn draft(&mut self, row: &mut [f32], cost: Cost) -> Result<DraftStep, DistributionError> {
        let spec = Arc::clone(&self.spec);
        let probs = &mut row[..spec.vocab_size as usize];
        let position = self.base_len + self.drafted;
        let observed = self.pipeline.distributions(
            probs,
            &mut self.unscaled,
            self.want,
            &self.history,
            position,
        )?;
        let unscaled = observed.unscaled.then_some(&self.unscaled[..]);
        let confidence = observed.confidence.unwrap_or_default();
        let options = drafting::ProposalOptions {
            form: spec.proposal_form,
            confidence: spec.proposal_fields.confidences,
            unscaled: spec.proposal_fields.unscaled,
        };
        let is_full = self.drafted == self.requested.max_tokens;
        // Whether drafting would go on decides what comes after a whole block, too, where a residual lasts.
        let is_asked = !is_full || spec.verification.carries_layers;
        self.has_stopped |= is_asked && self.stopping.stops_before(confidence);
        if is_full || self.has_stopped {
            let propose = || drafting::propose(probs, unscaled, confidence, options);
            let bonus = self.requested.bonus_q.then(propose);
            let cause = if self.has_stopped {
                StopCause::Policy
            } else {
                self.requested.cause()
            };
            return Ok(DraftStep {
                drawn: None,
                ending: Some(BlockEnd {
                    cause,
                    bonus,
                    forwards: std::mem::take(&mut self.forwards),
                }),
                cost,
            });
        }
        // The distribution is cut in place, so an unscaled distribution that is the distribution itself is kept
        // beside it.
        let is_cut = spec.proposal_form.sends_distributions();
        let keep = spec.proposal_fields.logprobs && is_cut && unscaled.is_none();
        let kept = keep.then(|| probs.to_vec());
        let mut proposal = drafting::propose(probs, unscaled, confidence, options);
        let at = (self.base_len, self.drafted);
        let id = drafting::draw(probs, spec.verification, &spec.noise, at, &mut self.chance);
        if spec.proposal_fields.logprobs {
            let unscaled = unscaled.or(kept.as_deref()).unwrap_or(probs);
            proposal.logprob = Some(unscaled[id as usize].ln_portable());
        }
        let shape = self.requested.tree;
        let siblings = if drafting::draws_siblings(spec.verification, spec.proposal_form) {
            drafting::drawn_siblings(shape, probs, id, self.drafted, &mut self.chance)
        } else {
            let unscaled = unscaled.unwrap_or(probs);
            drafting::siblings(shape, probs, unscaled, id, &spec.noise, position)
        };
        Ok(DraftStep {
            drawn: Some(DraftNode {
                id,
                proposal,
                siblings,
            }),
            ending: self.drawn(id),
            cost,
        })
    }

    /// Takes note of a drawn token, and ends the block after it if it is the last.
    fn drawn(&mut self, id: TokenId) -> Option<BlockEnd> {
        self.tokens.push(id);
        self.history.push(id);
        self.drafted += 1;
        // These end the block here if no distribution behind it is wanted, and after that one otherwise.
        self.has_stopped = self.stopping.drawn();
        let cause = match () {
            () if self.spec.sampling.end_tokens.contains(&id) => StopCause::EndToken,
            () if self.requested.bonus_q => return None,
            () if self.drafted == self.requested.max_tokens => self.requested.cause(),
            () if self.has_stopped => StopCause::Policy,
            () => return None,
        };
        Some(BlockEnd {
            cause,
            bonus: None,
            forwards: std::mem::take(&mut self.forwards),
        })
    }

    /// Returns whether only one token may come next, so that it needs no forward. An acceptance head needs the forward's
    /// hidden state.
    fn is_forced(&self) -> bool {
        let constraint = self.history.constraint();
        self.head.is_none() && constraint.is_some_and(|it| !it.forced().is_empty())
    }

    fn report(&self, drafted: Result<DraftStep, RoundError>) {
        // The receiver is gone if nobody waits any more; the task is then cancelled.
        let _ = self.reports.try_send(drafted);
    }
}

/// Returns what must be known of each distribution beside itself.
fn want(spec: &SessionSpec, requested: &DraftParams) -> Want {
    let (fields, rule) = (spec.proposal_fields, requested.stop_rule);
    Want {
        max: fields.confidences || rule.reads(Reads::Max),
        entropy: fields.entropies || rule.reads(Reads::Entropy),
        unscaled: fields.unscaled || fields.logprobs || requested.tree != TreeShape::Chain,
    }
}

impl Task for DraftTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn source(&self) -> &[TokenId] {
        self.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn wants_hidden(&self) -> bool {
        self.head.is_some()
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> TaskProgress {
        let timing = rows.timing;
        self.forwards[0] += 1;
        if let Some(head) = &self.head
            && self.stopping.wants_prediction()
        {
            // The row of the last drawn token: its hidden state, and the distribution of the next one.
            let accept = head.accept_probability(rows.hidden(0), &mut self.scratch);
            self.stopping.predicted(f64::from(accept));
        }
        let mut drafted = self.draft(rows.row_mut(0), Cost::of(timing));
        let goes_on = loop {
            let goes_on = matches!(&drafted, Ok(DraftStep { ending: None, .. }));
            self.report(drafted.map_err(RoundError::from));
            if !goes_on || !self.is_forced() {
                break goes_on;
            }
            // All but one token is masked, whatever the logits are.
            rows.row_mut(0).fill(0.0);
            drafted = self.draft(rows.row_mut(0), Cost::default());
        };
        self.progress.step(timing.forwarded_tokens);
        if goes_on {
            TaskProgress::Continue
        } else {
            TaskProgress::Done
        }
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        self.progress.part(done, total);
    }

    fn is_cancelled(&self) -> bool {
        self.reports.is_closed()
    }

    fn fail(self: Box<Self>, error: TaskError) {
        self.report(Err(error.into()));
    }
}
