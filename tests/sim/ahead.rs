//! A drafter that drafts ahead of the simulated target, and the coordinator's link to it.

use std::time::Duration;

use outrider_tests::toy::ToyModel;
use speculation::TokenId;
use speculation::ahead::{Acceptance, AheadTree, CHILDREN, Growth, Leaves, margin};
use speculation::coupled::choice;
use speculation::drafting::{TreeShape, siblings};
use speculation::pending::ProposedTree;
use speculation::session::Peer;

use crate::case::{Case, END_TOKEN};
use crate::sequence::Sequence;

/// Time of a forward of the draft model.
const FORWARD: Duration = Duration::from_millis(3);

/// What the coordinator tells a drafter: the output from position `from` on. The first of an epoch opens its session.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) epoch: u32,
    from: usize,
    tokens: Vec<TokenId>,
    credit: u32,
}

/// What a drafter says of an epoch: a proposal, or that it holds no such session.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) epoch: u32,
    pub(crate) proposed: Option<ProposedTree>,
}

/// The coordinator's end: which session is open, and what was told there.
#[derive(Debug, Default)]
pub(crate) struct AheadLink {
    epoch: u32,
    told: usize,
    pub(crate) opened: u32,
}

impl AheadLink {
    /// Returns what is to be told of `output`, if that grew; `credit` is the verifier's room.
    pub(crate) fn tell(&mut self, output: &[TokenId], credit: u32) -> Option<Commit> {
        if self.epoch == 0 {
            self.open();
        } else if self.told >= output.len() {
            return None;
        }
        let from = std::mem::replace(&mut self.told, output.len());
        Some(Commit {
            epoch: self.epoch,
            from,
            tokens: output[from..].to_vec(),
            credit,
        })
    }

    /// Takes what the drafter says: a proposal of the open session. Where it holds none, another is opened with the next
    /// commit.
    pub(crate) fn hear(&mut self, said: Said) -> Option<ProposedTree> {
        if said.epoch != self.epoch {
            return None;
        }
        if said.proposed.is_none() {
            self.open();
        }
        said.proposed
    }

    fn open(&mut self) {
        self.epoch += 1;
        self.opened += 1;
        self.told = 0;
    }
}

/// The drafter's end.
pub(crate) struct AheadDrafter<'a> {
    case: &'a Case,
    model: ToyModel,
    session: Option<Session>,
    /// When the forward under way ends.
    next: Option<Duration>,
    losses: usize,
}

struct Session {
    epoch: u32,
    output: Vec<TokenId>,
    tree: AheadTree,
    acceptance: Acceptance,
    room: usize,
    /// What the forward under way computes.
    leaves: Vec<Option<u32>>,
}

impl<'a> AheadDrafter<'a> {
    pub(crate) fn new(case: &'a Case) -> Self {
        Self {
            model: case.model(Peer::Drafter),
            case,
            session: None,
            next: None,
            losses: 0,
        }
    }

    /// When its forward ends, if one is under way.
    pub(crate) fn next_event(&self) -> Option<Duration> {
        self.next
    }

    /// Forgets everything if it crashed or was replaced since.
    pub(crate) fn note(&mut self, losses: usize) {
        if losses != self.losses {
            self.losses = losses;
            self.end();
        }
    }

    pub(crate) fn end(&mut self) {
        (self.session, self.next) = (None, None);
    }

    /// Follows what the target chose. Returns what it says, if it cannot.
    pub(crate) fn receive(&mut self, commit: &Commit, now: Duration) -> Option<Said> {
        let held = self.session.as_ref().map_or(0, |session| session.epoch);
        if commit.epoch < held {
            return None;
        }
        if commit.epoch > held && commit.from == 0 {
            self.session = Some(Session {
                epoch: commit.epoch,
                output: Vec::new(),
                tree: AheadTree::default(),
                acceptance: Acceptance::default(),
                room: 0,
                leaves: Vec::new(),
            });
            self.next = None;
        }
        let session = self.session.as_mut();
        let session =
            session.filter(|it| it.epoch == commit.epoch && it.output.len() >= commit.from);
        let Some(session) = session else {
            self.end();
            return Some(Said {
                epoch: commit.epoch,
                proposed: None,
            });
        };
        let repeated = session.output.len() - commit.from;
        for &token in commit.tokens.get(repeated..).unwrap_or_default() {
            session.tree.advance(token, &mut session.acceptance);
            session.output.push(token);
            // What is computed is of a tree that is no more.
            session.leaves.clear();
        }
        session.room = session.tree.len() + commit.credit as usize;
        if session.leaves.is_empty() {
            self.begin(now);
        }
        None
    }

    /// Begins the next forward, if anything is worth one.
    fn begin(&mut self, now: Duration) {
        let Some(session) = &mut self.session else {
            return;
        };
        let growth = growth(session);
        session.tree.fill(&session.acceptance, growth);
        session.leaves = match session.tree.grow(growth) {
            Leaves::None => Vec::new(),
            Leaves::Root => vec![None],
            Leaves::Nodes(nodes) => nodes.into_iter().map(Some).collect(),
        };
        self.next = (!session.leaves.is_empty()).then_some(now + FORWARD);
    }

    /// Ends the forward under way. Returns what it proposes.
    pub(crate) fn forward(&mut self, now: Duration) -> Option<Said> {
        self.next = None;
        let session = self.session.as_mut()?;
        let noise = self.case.noise(false);
        for leaf in std::mem::take(&mut session.leaves) {
            let path = session.tree.path(leaf);
            let context = [&session.output[..], &path].concat();
            let probs = Sequence::new(self.case, &self.model, noise, &context).probs();
            let position = context.len() as u32;
            let first = choice(&probs, &noise, position);
            let shape = TreeShape::Alternates(CHILDREN as u32 - 1);
            let others = siblings(shape, &probs, &probs, first, &noise, position);
            let second = others.first().copied();
            let margin = margin(&probs, &probs, (&noise, position), first, second);
            let tokens = std::iter::once(first).chain(others).collect();
            session.tree.computed(leaf, margin, tokens);
        }
        let growth = growth(session);
        session.tree.fill(&session.acceptance, growth);
        let after = session.output.len() as u32;
        let (epoch, proposed) = (session.epoch, session.tree.propose(after));
        self.begin(now);
        proposed.map(|proposed| Said {
            epoch,
            proposed: Some(proposed),
        })
    }
}

fn growth(session: &Session) -> Growth<'static> {
    Growth {
        levels: 12,
        nodes: session.room.min(64),
        least: 0.02,
        rows: 4,
        row_cost: 0.1,
        ends: &[END_TOKEN],
    }
}
