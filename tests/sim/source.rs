//! Where proposals come from: a source that knows nothing exact, and others that know nothing at all.

use std::time::Duration;

use outrider_tests::toy::ToyModel;
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::pending::{Bounds, PendingTree, ProposedTree, ROOM};
use speculation::session::Peer;

use crate::case::{Case, END_TOKEN, VOCAB_SIZE};
use crate::dice::{Chooses, Dice};
use crate::garbage::{self, Nodes};
use crate::sequence::Sequence;

/// How far drafts go ahead of the output.
const LEVELS: u32 = 16;

/// The coordinator's sources of drafts, and what they have on its way.
pub(crate) struct Sources<'a> {
    case: &'a Case,
    model: ToyModel,
    dice: Dice,
    /// Whether all sources are of the draft model.
    honest: bool,
    pending: PendingTree,
    /// Output tokens that pending drafts have followed.
    known: usize,
    /// What the draft model writes after these.
    chain: Vec<TokenId>,
    /// Whether the verifier may hold nothing of what is pending.
    is_lost: bool,
    /// When something is proposed next; none while nothing is decoded.
    next: Option<Duration>,
    /// The output of another session.
    other: Vec<TokenId>,
    /// How often pending drafts were offered again.
    pub(crate) offered_again: u32,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(case: &'a Case) -> Self {
        let other = Case {
            seed: case.seed ^ 1,
            ..case.clone()
        };
        Self {
            model: case.model(Peer::Drafter),
            dice: Dice::new(case.seed, Chooses::Proposals),
            honest: case.honest,
            pending: PendingTree::default(),
            known: 0,
            chain: Vec::new(),
            is_lost: false,
            next: None,
            other: if case.streams {
                other.target_alone()
            } else {
                Vec::new()
            },
            offered_again: 0,
            case,
        }
    }

    /// Takes note that a decode is asked for, where nothing of what is pending may be held.
    pub(crate) fn begin(&mut self, now: Duration) {
        if self.case.streams {
            self.is_lost = true;
            self.next.get_or_insert(now);
        }
    }

    /// Takes note that the request is over.
    pub(crate) fn close(&mut self) {
        self.next = None;
        self.pending = PendingTree::default();
    }

    /// When [`Sources::propose`] must be called.
    pub(crate) fn next_event(&self) -> Option<Duration> {
        self.next
    }

    /// Whether nothing is kept any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.next.is_none() && self.pending.is_empty()
    }

    /// Returns how many more drafts may be pending.
    pub(crate) fn room(&self) -> u32 {
        (ROOM - self.pending.len()) as u32
    }

    /// Keeps what of a drafter's proposal may be right. Returns whether anything of it is new.
    pub(crate) fn keep_new(&mut self, proposed: &ProposedTree, output: &[TokenId]) -> bool {
        if self.next.is_none() {
            return false;
        }
        self.follow(output);
        self.keep(proposed, output) > 0
    }

    /// Returns what is proposed on top of `output`.
    pub(crate) fn propose(&mut self, output: &[TokenId], now: Duration) -> Vec<ProposedTree> {
        self.next = Some(now + self.dice.time(2..12));
        self.follow(output);
        let mut proposals = Vec::new();
        if std::mem::take(&mut self.is_lost) && !self.pending.is_empty() {
            self.offered_again += 1;
            proposals.push(self.pending.again(output.len() as u32));
        }
        let kind = if self.honest { 0 } else { self.dice.below(10) };
        proposals.extend(match kind {
            0..5 => self.drafted(output),
            5 => Some(garbage::late(&mut self.dice, output, &self.chain)),
            6 => Some(garbage::of_another(&mut self.dice, output, &self.other)),
            7 => Some(garbage::noise(&mut self.dice, output)),
            _ => Some(garbage::malformed(&mut self.dice, output)),
        });
        // Enough of it for all the room that there is.
        let more = if kind == 7 {
            self.dice.pick(&[0, 2])
        } else {
            0
        };
        proposals.extend((0..more).map(|_| garbage::noise(&mut self.dice, output)));
        proposals
    }

    fn follow(&mut self, output: &[TokenId]) {
        for &token in output.get(self.known..).unwrap_or_default() {
            self.pending.advance(token);
            self.known += 1;
            if self.chain.first() == Some(&token) {
                self.chain.remove(0);
            } else {
                self.chain.clear();
            }
        }
    }

    /// Drafts of the draft model beyond what is pending, some with alternates; none if that goes far enough ahead.
    fn drafted(&mut self, output: &[TokenId]) -> Option<ProposedTree> {
        let goes_far = self.pending.levels() > LEVELS / 2;
        if self.case.drafts_ahead || goes_far || self.chain.last() == Some(&END_TOKEN) {
            return None;
        }
        let shared = self.pending.shared(&self.chain);
        let more = shared + 1 + self.dice.below(4) as usize;
        let width = self.dice.pick(&[0, 0, 1, 3]);
        let (mut nodes, mut survival): (Nodes, f32) = (Nodes::default(), 1.0);
        let mut parent = None;
        let path = self.chain[..shared].to_vec();
        let (model, noise) = (self.model.clone(), self.case.noise(false));
        let mut sequence = Sequence::new(self.case, &model, noise, &[output, &path].concat());
        for level in shared..more {
            let probs = sequence.probs();
            let lead = choice(&probs, &noise, (output.len() + level) as u32);
            survival *= 0.8;
            let node = nodes.push(lead, parent, survival);
            let mut others: Vec<TokenId> = (0..VOCAB_SIZE).filter(|&it| it != lead).collect();
            others.sort_by(|&one, &two| probs[two as usize].total_cmp(&probs[one as usize]));
            for &alternate in &others[..width] {
                nodes.push(alternate, parent, survival * 0.1);
            }
            self.chain.truncate(level);
            self.chain.push(lead);
            if lead == END_TOKEN {
                break;
            }
            sequence.push(lead);
            parent = Some(node);
        }
        let proposed = nodes.proposed(output.len() as u32, &path, 0);
        self.keep(&proposed, output);
        Some(proposed)
    }

    /// Keeps what of `proposed` may be right. Returns how many drafts of it are new.
    fn keep(&mut self, proposed: &ProposedTree, output: &[TokenId]) -> u32 {
        let bounds = Bounds {
            levels: LEVELS,
            vocab_size: VOCAB_SIZE,
            ends: &[END_TOKEN],
        };
        let received = self.pending.receive(proposed, output, bounds);
        assert!(self.pending.len() <= ROOM);
        received.new
    }
}
