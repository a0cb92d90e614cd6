//! The pending drafts of a decode, and the acceptance of their sources.

use std::time::{Duration, Instant};

use model::engine::Awaited;
use peer::Proposals;
use speculation::TokenId;
use speculation::constraint::Constraint;
use speculation::draft_tree::DraftTree;
use speculation::pending::{Bounds, Claim, PendingTree, ProposedTree, SOURCES, Trust};
use wire::open::SessionSpec;
use wire::v1;

/// Weight of the latest observation in the running means of [`Refill`].
const LATEST: f32 = 0.2;

/// A refill is awaited until it is late by this factor.
const GRACE: f32 = 1.5;

/// Longest wait for drafts, as a share of a forward.
const PATIENCE: f32 = 0.25;

/// Number of the source of forced tokens, which the verifier proposes itself. Sources of coordinators are numbered from 0.
const FORCED: u8 = SOURCES as u8 - 1;

/// Drafts that come while a round decodes. They are read on the engine's thread alone.
#[derive(Default)]
pub(crate) struct PendingDrafts {
    proposals: Proposals,
    pending: PendingTree,
    trust: Trust,
    /// Counts of the drafts that were dropped since the last forward.
    fell_off: v1::ForwardDrafts,
    /// Length of the output for which forced tokens were last computed.
    forced_at: Option<usize>,
    refill: Refill,
    /// The drafts that the engine was offered for the next forward, with their worth, the best first.
    ranked: Vec<(u32, f32)>,
    /// The draft tree that the next forward scores, and the claim of each of its nodes.
    block: DraftTree,
    claims: Vec<Claim>,
}

/// Measures how soon drafts arrive after a forward that left none pending, and how often their first token is accepted.
#[derive(Default)]
struct Refill {
    /// When the last forward ended that left none, and the one before it.
    left_none: (Option<Instant>, Option<Instant>),
    /// Usual seconds until drafts come; none before they did.
    after: Option<f32>,
    /// Running mean of how often such drafts arrive within a forward and have their first token accepted.
    pays: f32,
    /// Whether drafts have arrived since the last forward.
    is_new: bool,
}

impl PendingDrafts {
    pub(crate) fn of(proposals: Proposals) -> Self {
        Self {
            proposals,
            ..Self::default()
        }
    }

    /// Adds the proposals that have arrived, and the tokens that `constraint` forces; drops drafts that `constraint` does not
    /// allow. `constraint` stands at the end of `output`, the output tokens so far; at most `levels` more may be accepted.
    pub(crate) fn receive(
        &mut self,
        spec: &SessionSpec,
        (output, constraint): (&[TokenId], Option<&dyn Constraint>),
        levels: u32,
    ) {
        let bounds = Bounds {
            levels,
            vocab_size: spec.vocab_size,
            ends: &spec.sampling.end_tokens,
        };
        let mut is_new = false;
        while let Some((arrived, proposed)) = self.proposals.take() {
            let was_empty = self.pending.is_empty();
            let received = self.pending.receive(&proposed, output, bounds);
            if was_empty && !self.pending.is_empty() {
                self.refill.came(arrived);
            }
            self.fell_off.stale += received.stale;
            self.fell_off.without_room += received.without_room;
            self.fell_off.malformed += received.malformed;
            is_new = true;
        }
        let Some(constraint) = constraint else { return };
        if self.forced_at != Some(output.len()) {
            self.forced_at = Some(output.len());
            let forced = forced(constraint.forced(), output.len() as u32);
            self.pending.receive(&forced, output, bounds);
        }
        if is_new {
            self.fell_off.malformed += self.pending.keep_fitting(constraint);
        }
    }

    /// Ranks the pending drafts of at most `levels` levels, and returns what each is worth, the best first.
    pub(crate) fn offer(&mut self, levels: u32, chain: bool) -> impl Iterator<Item = f32> {
        self.ranked = self.pending.ranked(levels, chain, &self.trust);
        self.ranked.iter().map(|&(_, worth)| worth)
    }

    /// Makes the first `drafts` of those offered the next forward's block.
    pub(crate) fn prepare(&mut self, drafts: usize) -> &DraftTree {
        let chosen = &self.ranked[..drafts.min(self.ranked.len())];
        (self.block, self.claims) = self.pending.tree_of(chosen);
        &self.block
    }

    pub(crate) fn block(&self) -> &DraftTree {
        &self.block
    }

    /// Returns whether the engine should wait for drafts before the next forward, which takes about `forward`.
    pub(crate) fn awaited(&self, forward: Duration) -> Awaited {
        if self.pending.is_empty() {
            self.refill.awaited(forward.as_secs_f32())
        } else {
            Awaited::Here
        }
    }

    /// Records a forward that emitted `tokens`, the first of which are the nodes `path` of its draft tree. Returns the counts of
    /// drafts offered, and dropped since the forward before.
    pub(crate) fn follow(&mut self, tokens: &[TokenId], path: &[u32]) -> v1::ForwardDrafts {
        let offered = self.ranked.len() as u32;
        if offered > 0 {
            let claims = self.claims.iter().zip(0_u32..);
            self.trust
                .observe(claims.map(|(&claim, node)| (claim, path.contains(&node))));
        }
        for &token in tokens {
            self.fell_off.stale += self.pending.advance(token).1;
        }
        let (is_right, is_empty) = (!path.is_empty(), self.pending.is_empty());
        (self.refill).ended(Instant::now(), offered > 0, is_right, is_empty);
        self.ranked.clear();
        self.claims.clear();
        self.block = DraftTree::default();
        v1::ForwardDrafts {
            offered,
            room: self.pending.room() as u32,
            ..std::mem::take(&mut self.fell_off)
        }
    }
}

/// Returns a proposal of forced `tokens` that follow `after` output tokens.
fn forced(tokens: Vec<TokenId>, after: u32) -> ProposedTree {
    let claim = Claim {
        source: FORCED,
        survival: 1.0,
    };
    let tokens = tokens.into_iter().map(|token| (token, claim));
    ProposedTree::chain(after, &[], tokens)
}

impl Refill {
    /// Drafts came at `arrived`, and some of them fit.
    fn came(&mut self, arrived: Instant) {
        let (last, before) = self.left_none;
        let asked = last.filter(|&last| last <= arrived).or(before);
        let Some(asked) = asked else { return };
        let after = arrived.saturating_duration_since(asked).as_secs_f32();
        let usual = self.after.get_or_insert(after);
        *usual += LATEST * (after - *usual);
        self.is_new = true;
    }

    /// Records a forward that ended at `now`. `had_drafts`: it was offered drafts; `is_right`: it accepted some; `is_empty`: it
    /// left none pending.
    fn ended(&mut self, now: Instant, had_drafts: bool, is_right: bool, is_empty: bool) {
        // Drafts that arrived earlier and still fit say nothing about how soon new ones arrive.
        if std::mem::take(&mut self.is_new) || !had_drafts && self.left_none.0.is_some() {
            self.pays += LATEST * (f32::from(u8::from(is_right)) - self.pays);
        }
        self.left_none = (is_empty.then_some(now), self.left_none.0);
    }

    fn awaited(&self, forward: f32) -> Awaited {
        let (Some(since), Some(after)) = (self.left_none.0, self.after) else {
            return Awaited::Nothing;
        };
        let wait = GRACE * after;
        if wait > PATIENCE * forward || wait > self.pays * forward {
            return Awaited::Nothing;
        }
        Awaited::Until(since + Duration::from_secs_f32(wait))
    }
}

#[cfg(test)]
mod tests;
