//! One decode of the simulated verifier: what is pending after its output, and the forward under way, which scores the
//! drafts that had come when it began.

use std::time::Duration;

use outrider_tests::toy::ToyModel;
use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use speculation::pending::{Bounds, Claim, PendingTree, ProposedTree, ROOM, Received, Trust};
use speculation::session::ScoredDrafts;

use crate::case::{Case, END_TOKEN, VOCAB_SIZE};
use crate::decodes::StreamTally;
use crate::message::Answer;
use crate::sequence::Sequence;

/// What a decode begins with.
pub(crate) struct Beginning {
    pub(crate) round: u64,
    pub(crate) output: Vec<TokenId>,
    pub(crate) max_tokens: u32,
    /// Position up to which tokens are granted.
    pub(crate) until: u32,
}

pub(crate) struct Decoding {
    round: u64,
    /// Output tokens: those committed, then those decoded.
    output: Vec<TokenId>,
    /// Most tokens still to come.
    left: u32,
    until: u32,
    pending: PendingTree,
    trust: Trust,
    /// None while no more is granted.
    forward: Option<Forward>,
}

/// A forward under way, with what it was planned with.
struct Forward {
    ends: Duration,
    rows: usize,
    chain: bool,
    block: DraftTree,
    claims: Vec<Claim>,
}

impl Decoding {
    pub(crate) fn new(beginning: Beginning) -> Self {
        Self {
            round: beginning.round,
            output: beginning.output,
            left: beginning.max_tokens,
            until: beginning.until,
            pending: PendingTree::default(),
            trust: Trust::default(),
            forward: None,
        }
    }

    /// When the forward under way ends, if one is.
    pub(crate) fn forward_ends(&self) -> Option<Duration> {
        self.forward.as_ref().map(|forward| forward.ends)
    }

    /// Whether all is decoded.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0 || self.output.last() == Some(&END_TOKEN)
    }

    pub(crate) fn grant(&mut self, until: u32) {
        self.until = self.until.max(until);
    }

    /// Takes a proposal.
    pub(crate) fn receive(&mut self, proposed: &ProposedTree) -> Received {
        let bounds = Bounds {
            levels: self.levels(),
            vocab_size: VOCAB_SIZE,
            ends: &[END_TOKEN],
        };
        let received = self.pending.receive(proposed, &self.output, bounds);
        assert!(self.pending.len() <= ROOM);
        received
    }

    /// Begins a forward of `rows` drafts that ends at `ends`, unless one is under way. Returns false if none is granted.
    pub(crate) fn begin_forward(&mut self, rows: usize, chain: bool, ends: Duration) -> bool {
        if self.forward.is_none() && self.position() < self.until {
            let (block, claims) = self.plan(rows, chain);
            self.forward = Some(Forward {
                ends,
                rows,
                chain,
                block,
                claims,
            });
        }
        self.forward.is_some()
    }

    fn position(&self) -> u32 {
        self.output.len() as u32
    }

    /// Returns how many drafts in a row the next forward may accept: it adds a token to them.
    fn levels(&self) -> u32 {
        let granted = self.until.saturating_sub(self.position());
        self.left.min(granted).saturating_sub(1)
    }

    /// Returns the best `rows` of what is pending, and what is claimed of each.
    fn plan(&self, rows: usize, chain: bool) -> (DraftTree, Vec<Claim>) {
        let mut ranked = (self.pending).ranked(self.levels(), chain, &self.trust);
        ranked.truncate(rows);
        let planned = self.pending.tree_of(&ranked);
        assert_eq!(planned.0.len(), ranked.len(), "what is ranked is a tree");
        planned
    }

    /// Ends the forward under way: decides what it was planned with, and follows its tokens. Returns what is said of it,
    /// and in which round.
    pub(crate) fn step(
        &mut self,
        case: &Case,
        model: &ToyModel,
        tally: &mut StreamTally,
    ) -> Option<(u64, Answer)> {
        let forward = self.forward.take()?;
        let (at, block) = (self.position(), &forward.block);
        let sequence = || Sequence::new(case, model, case.noise(false), &self.output);
        let verdict = sequence().walk(block);
        let (current, _) = self.plan(forward.rows, forward.chain);
        if current != *block {
            tally.changed += 1;
            let other = sequence().walk(&current).emitted;
            let mut both = verdict.emitted.iter().zip(&other);
            let same = both.all(|(one, two)| one == two);
            assert!(same, "drafts that came meanwhile: {other:?}, {verdict:?}");
        }
        let accepted = verdict.path.len();
        let claims = forward.claims.iter().zip(0_u32..);
        (self.trust).observe(claims.map(|(&claim, node)| (claim, verdict.path.contains(&node))));
        for (index, &token) in verdict.emitted.iter().enumerate() {
            let (source, _) = self.pending.advance(token);
            let is_pending = source.is_some() || index >= accepted;
            assert!(is_pending, "an accepted draft is not pending: {verdict:?}");
        }
        self.left -= verdict.emitted.len() as u32;
        self.output.extend_from_slice(&verdict.emitted);
        assert!(self.position() <= self.until, "more than is granted");
        tally.accepted += accepted as u32;
        let drafts = (!block.is_empty()).then_some(ScoredDrafts {
            scored: block.len() as u32,
            accepted: accepted as u32,
            last: verdict.last,
        });
        let tokens = verdict.emitted;
        Some((self.round, Answer::Decoded { at, tokens, drafts }))
    }
}
