//! The proposals of one request with schedule `stream`, from all sources.

use speculation::TokenId;
use speculation::ahead::{Balance, Findings, JudgedForward, ON_THE_WAY};
use speculation::drafting::Drafting;
use speculation::pending::{Bounds, Claim, PendingTree, ProposedTree, ROOM, Trust};
use wire::{pending, v1};

use super::source::{Least, Source};
use crate::admitted::AdmittedRequest;
use crate::events::Proposed;

/// Most levels of pending drafts, if the request sets no limit.
const LEVELS: u32 = 48;

/// Least survival of a draft that is sent: this probability while the verifier's price is not known, and this share of the
/// price once it is.
const LEAST: f32 = 0.05;
const OF_PRICE: f32 = 0.5;

/// A proposal whose first token is accepted with this probability is always sent.
const LIKELY: f32 = 0.5;

/// Accepted nodes that each source is credited with when a request begins, so that a few misses do not discredit it.
const EARNED: f32 = 3.0;

/// What a drafter's drafts are called in metrics.
const DRAFTER: &str = "drafter";

/// Factor by which the known price decays after each forward that reports a lower one.
const FADES: f32 = 0.8;

/// After this number of reports in a row that the verifier holds no drafts although some were sent, they count as lost.
const LOST: u32 = 3;

/// The drafts of a request on their way to the verifier. They are kept for as long as they may be right, to be offered
/// again where the request goes on.
pub(crate) struct ProposalLane {
    /// Those here; a source's place is its number.
    sources: Vec<Source>,
    /// The drafter's figures, if one drafts ahead; its number comes after those of the others.
    drafter: Option<Proposed>,
    /// Whether its drafts are worth their way.
    balance: Balance,
    /// Whether it drafts even if they are not.
    drafts_always: bool,
    pending: PendingTree,
    /// How far sources are believed, measured on the first token of every prediction, sent or not.
    trust: Trust,
    /// Output tokens that sources and pending drafts have followed.
    known: usize,
    /// Whether the pending drafts must be sent again, because the verifier may hold none of them, or not all.
    is_lost: bool,
    /// Number of reports since the last proposal that the verifier holds no drafts.
    silent: u32,
    /// The verifier's price: the least survival that was worth a row of a forward.
    price: f32,
    /// Expected saving of a proposal from which on it is sent, as a share of a sequence's share of a forward: sending and reading
    /// it takes about as much processor time from other requests.
    least_first: f32,
    /// A sequence's share of the latest forward, in milliseconds.
    forward_ms: f32,
    /// Draft tokens that the verifier has room for.
    room: u32,
    levels: u32,
    /// Output tokens at most.
    max_tokens: u32,
    vocab_size: u32,
    ends: Vec<TokenId>,
    /// Sums of the verifier's counts over all forwards so far.
    counted: v1::ForwardDrafts,
}

impl ProposalLane {
    /// Returns the lane of `request`; none if its target takes no drafts while it decodes. `findings` are those of requests
    /// like it.
    pub(crate) fn of(request: &AdmittedRequest, findings: &Findings) -> Option<Self> {
        if !request.method.streams() {
            return None;
        }
        let drafts = request.method.drafting != Drafting::MaxGram;
        Some(Self {
            sources: Source::all_of(request),
            drafter: drafts.then(|| Proposed::nothing_by(DRAFTER)),
            balance: findings.begin(),
            drafts_always: request.drafts_always,
            room: ROOM as u32,
            pending: PendingTree::default(),
            trust: Trust::earned(EARNED),
            known: 0,
            is_lost: false,
            silent: 0,
            price: 0.0,
            least_first: LEAST,
            forward_ms: 0.0,
            levels: request.method.draft_most.unwrap_or(LEVELS),
            max_tokens: request.max_tokens,
            vocab_size: request.vocab_size,
            ends: request.sampling.end_tokens.clone(),
            counted: v1::ForwardDrafts::default(),
        })
    }

    /// Whether a drafter is one of the sources.
    pub(crate) fn takes_drafter(&self) -> bool {
        self.drafter.is_some()
    }

    /// Returns how many of a drafter's draft tokens there is room for; none while they are not worth their way.
    pub(crate) fn room(&self) -> u32 {
        if self.balance.is_resting() && !self.drafts_always {
            0
        } else {
            self.room
        }
    }

    /// Returns the least survival of a drafter's draft token that is worth its way.
    pub(crate) fn least(&self) -> f32 {
        let of_price = self.price * OF_PRICE;
        if self.drafts_always {
            of_price
        } else {
            of_price.max(self.least_first)
        }
    }

    /// Records that the verifier may hold none of the pending drafts, or not all: the decode begins anew, or a proposal found no
    /// place on the way.
    pub(crate) fn lost(&mut self) {
        self.is_lost = true;
    }

    /// Records the tokens that a forward decoded; `decoded.from` is the output position of the first.
    pub(crate) fn decided(&mut self, decoded: &v1::Decoded) {
        let Some(forward) = &decoded.drafts else {
            return;
        };
        pending::add(&mut self.counted, forward);
        let mut sequences = 0;
        if let Some(timing) = decoded.timing.filter(|timing| timing.forward_us > 0) {
            // A forward is shared by the sequences in it.
            sequences = timing.batch.max(1);
            self.forward_ms = timing.forward_us as f32 / 1e3 / sequences as f32;
            self.least_first = (ON_THE_WAY / self.forward_ms).min(LIKELY);
        }
        // A forward without drafts reports no price.
        self.price = forward.price.max(self.price * FADES);
        self.room = forward.room;
        let holds_none = forward.room as usize >= ROOM && !self.pending.is_empty();
        self.silent = if holds_none { self.silent + 1 } else { 0 };
        self.is_lost |= self.silent >= LOST;
        // Tokens that were repeated or skipped are followed in `next`, from the output.
        if decoded.from as usize != self.known {
            return;
        }
        let before = self.drafter.map_or(0, |drafter| drafter.accepted);
        for (index, &token) in decoded.token_ids.iter().enumerate() {
            let (source, _) = self.pending.advance(token);
            self.known += 1;
            let source = source.filter(|_| index < forward.accepted as usize);
            if let Some(figures) = source.and_then(|it| self.figures_of(it)) {
                figures.accepted += 1;
            }
        }
        let accepted = self.drafter.map_or(0, |drafter| drafter.accepted) - before;
        self.balance.forward(JudgedForward {
            accepted: accepted as u32,
            all_accepted: forward.accepted,
            scored: forward.scored,
            price: forward.price,
            ms: self.forward_ms,
            sequences,
        });
    }

    /// Returns what to propose on top of `output`, before which `lead` stands.
    pub(crate) async fn next(&mut self, lead: &[TokenId], output: &[TokenId]) -> Vec<ProposedTree> {
        for &token in output.get(self.known..).unwrap_or_default() {
            self.pending.advance(token);
            self.known += 1;
        }
        let mut guesses = (0_u8..).zip(&mut self.sources).filter_map(|(source, it)| {
            let (survival, is_right) = it.judged(output)?;
            Some((Claim { source, survival }, is_right))
        });
        if let Some(first) = guesses.next() {
            self.trust.observe(std::iter::once(first).chain(guesses));
        }
        for source in &mut self.sources {
            source.follow(lead, output).await;
        }
        let mut proposals = Vec::new();
        if std::mem::take(&mut self.is_lost) && !self.pending.is_empty() {
            proposals.push(self.pending.again(output.len() as u32));
        }
        // Half of the levels are enough to draft ahead of the next forwards.
        if self.pending.levels() <= self.levels / 2 {
            proposals.extend((0..self.sources.len()).filter_map(|at| self.propose(at, output)));
        }
        if !proposals.is_empty() {
            self.silent = 0;
        }
        proposals
    }

    /// Returns what of a drafter's proposal fits `output` and is new, to be sent to the verifier.
    pub(crate) fn receive(
        &mut self,
        mut proposed: ProposedTree,
        output: &[TokenId],
    ) -> Option<ProposedTree> {
        let source = self.sources.len() as u8;
        for node in &mut proposed.nodes {
            node.claim.source = source;
        }
        self.balance.came();
        let left = self.max_tokens.saturating_sub(output.len() as u32);
        let bounds = Bounds {
            levels: left.saturating_sub(1),
            vocab_size: self.vocab_size,
            ends: &self.ends,
        };
        let received = self.pending.receive(&proposed, output, bounds);
        if let Some(figures) = &mut self.drafter {
            figures.tokens += u64::from(received.new);
        }
        self.silent = 0;
        (received.new > 0).then_some(proposed)
    }

    /// Returns the figures of the source with this number.
    fn figures_of(&mut self, source: u8) -> Option<&mut Proposed> {
        let own = self.sources.get_mut(usize::from(source));
        own.map_or(self.drafter.as_mut(), |own| Some(&mut own.figures))
    }

    /// Returns what the source number `at` proposes beyond what is pending.
    fn propose(&mut self, at: usize, output: &[TokenId]) -> Option<ProposedTree> {
        let left = self.max_tokens.saturating_sub(output.len() as u32);
        // The target adds one to whatever is accepted.
        let levels = self.levels.min(left.saturating_sub(1));
        let source = self.sources.get_mut(at)?;
        let least = Least {
            first: self.least_first.max(LEAST),
            each: LEAST.max(self.price * OF_PRICE),
        };
        let share = self.trust.share(at as u8);
        let chain = source.chain(output.len(), levels, share, least)?;
        let (tokens, survivals): (Vec<TokenId>, Vec<f32>) = chain.into_iter().unzip();
        let shared = self.pending.shared(&tokens);
        if shared == tokens.len() {
            return None;
        }
        let claimed = shared.checked_sub(1).map_or(1.0, |last| survivals[last]);
        let claims = survivals[shared..].iter().map(|survival| Claim {
            source: at as u8,
            survival: survival / claimed,
        });
        let (path, new) = tokens.split_at(shared);
        let new = new.iter().copied().zip(claims);
        let proposed = ProposedTree::chain(output.len() as u32, path, new);
        let bounds = Bounds {
            levels,
            vocab_size: self.vocab_size,
            ends: &self.ends,
        };
        let received = self.pending.receive(&proposed, output, bounds);
        source.figures.tokens += u64::from(received.new);
        (received.new > 0).then_some(proposed)
    }

    /// Returns what each source proposed so far, and what became of all of it.
    pub(crate) fn figures(&self) -> (Vec<Proposed>, v1::ForwardDrafts) {
        let sources = self.sources.iter().map(|source| source.figures);
        (sources.chain(self.drafter).collect(), self.counted)
    }
}
