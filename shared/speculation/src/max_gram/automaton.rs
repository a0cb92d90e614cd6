//! A suffix automaton whose last token can be taken back.
//!
//! Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985), built online:
//! a state stands for the strings that occur at the same places, and its link leads to the longest
//! of their suffixes that also occurs elsewhere. The link of the whole text's state is therefore
//! the longest suffix that occurs earlier.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::TokenId;

/// A state's index; 0 stands for the empty string.
type StateId = u32;

const ROOT: StateId = 0;
const NONE: u32 = u32::MAX;

/// Longest suffixes of the text whose occurrences are counted with each token: more of them are only in texts that
/// repeat one short string, and would make a push depend on the text's length.
const COUNTED: usize = 64;

#[derive(Clone, Debug)]
struct Node {
    /// Length of its longest string, in tokens.
    len: u32,
    /// The state of the longest suffix that occurs elsewhere; none for the root.
    link: StateId,
    /// Where its strings end first, as an index into the text.
    first_end: u32,
    /// How often its strings occur, as far as they were among the [`COUNTED`] longest suffixes there.
    count: u32,
    /// The transition made last; the others follow by [`Edge::next`].
    edges: u32,
}

#[derive(Clone, Debug)]
struct Edge {
    from: StateId,
    token: TokenId,
    to: StateId,
    next: u32,
}

/// What one push changed beside what it added.
#[derive(Clone, Debug)]
struct PushChanges {
    nodes: u32,
    edges: u32,
    moved: u32,
    /// The state of the whole text before.
    whole: StateId,
    /// A state that was split, and its link before.
    split: Option<(StateId, StateId)>,
}

/// The longest suffix of a text that another text, the automaton's, holds: its state there, and its length.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Match {
    state: StateId,
    len: u32,
}

/// A string that the automaton's text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatchedString {
    state: StateId,
    /// Where it ends first, as an index into the text.
    pub(super) first_end: usize,
    /// Its length.
    pub(super) len: u32,
    /// How often it occurs.
    pub(super) count: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    lookup: HashMap<(StateId, TokenId), u32>,
    whole: StateId,
    steps: Vec<PushChanges>,
    /// Edges led elsewhere, and where they led before, oldest first.
    moved: Vec<(u32, StateId)>,
}

impl Automaton {
    pub(super) fn new() -> Self {
        let root = Node {
            len: 0,
            link: NONE,
            first_end: NONE,
            count: 0,
            edges: NONE,
        };
        Self {
            nodes: vec![root],
            ..Self::default()
        }
    }

    /// Adds `token` to the text.
    pub(super) fn push(&mut self, token: TokenId) {
        self.extend(token);
        self.for_suffixes(|count| *count += 1);
    }

    /// Changes the counts of the text's longest suffixes.
    fn for_suffixes(&mut self, change: fn(&mut u32)) {
        let mut state = self.whole;
        for _ in 0..COUNTED {
            if state == ROOT || state == NONE {
                return;
            }
            let node = &mut self.nodes[state as usize];
            change(&mut node.count);
            state = node.link;
        }
    }

    fn extend(&mut self, token: TokenId) {
        self.steps.push(PushChanges {
            nodes: self.nodes.len() as u32,
            edges: self.edges.len() as u32,
            moved: self.moved.len() as u32,
            whole: self.whole,
            split: None,
        });
        let end = self.nodes[self.whole as usize].len;
        let new = self.add(Node {
            len: end + 1,
            link: ROOT,
            first_end: end,
            count: 0,
            edges: NONE,
        });
        // Every suffix of the text before can now be followed by the token.
        let mut state = self.whole;
        self.whole = new;
        let found = loop {
            if let Some(&edge) = self.lookup.get(&(state, token)) {
                break edge;
            }
            self.connect(state, token, new);
            state = self.nodes[state as usize].link;
            if state == NONE {
                return;
            }
        };
        let target = self.edges[found as usize].to;
        let len = self.nodes[state as usize].len + 1;
        let link = if self.nodes[target as usize].len == len {
            target
        } else {
            self.split(target, len, state, token)
        };
        self.nodes[new as usize].link = link;
    }

    /// Takes the last token back, if there is one.
    pub(super) fn pop(&mut self) {
        let Some(step) = self.steps.pop() else {
            return;
        };
        self.for_suffixes(|count| *count -= 1);
        for (edge, to) in self.moved.drain(step.moved as usize..).rev() {
            self.edges[edge as usize].to = to;
        }
        for edge in self.edges.drain(step.edges as usize..).rev() {
            self.lookup.remove(&(edge.from, edge.token));
            self.nodes[edge.from as usize].edges = edge.next;
        }
        self.nodes.truncate(step.nodes as usize);
        if let Some((state, link)) = step.split {
            self.nodes[state as usize].link = link;
        }
        self.whole = step.whole;
    }

    /// The longest suffix of the text that occurs earlier, with its earlier occurrences; none if the last token is new.
    pub(super) fn earlier(&self) -> Option<MatchedString> {
        match self.nodes[self.whole as usize].link {
            ROOT | NONE => None,
            state => {
                let node = &self.nodes[state as usize];
                Some(MatchedString {
                    state,
                    first_end: node.first_end as usize,
                    len: node.len,
                    count: node.count - 1,
                })
            }
        }
    }

    /// The match of a text whose match was `before`, with `token` added.
    pub(super) fn follow(&self, before: Match, token: TokenId) -> Match {
        let Match { mut state, mut len } = before;
        loop {
            if let Some(&edge) = self.lookup.get(&(state, token)) {
                let state = self.edges[edge as usize].to;
                return Match {
                    state,
                    len: len + 1,
                };
            }
            state = self.nodes[state as usize].link;
            if state == NONE {
                return Match::default();
            }
            len = self.nodes[state as usize].len;
        }
    }

    /// The matched string; none if nothing is matched.
    pub(super) fn found(&self, matched: Option<&Match>) -> Option<MatchedString> {
        let Match { state, len } = *matched.filter(|matched| matched.state != ROOT)?;
        let node = &self.nodes[state as usize];
        Some(MatchedString {
            state,
            first_end: node.first_end as usize,
            len,
            count: node.count,
        })
    }

    /// The tokens that followed `found`: the most frequent first, among equals the one that is newest there.
    pub(super) fn following(&self, found: &MatchedString) -> Vec<TokenId> {
        let mut ranked = Vec::new();
        let mut edge = self.nodes[found.state as usize].edges;
        while edge != NONE {
            let Edge {
                token, to, next, ..
            } = self.edges[edge as usize];
            let node = &self.nodes[to as usize];
            ranked.push((Reverse((node.count, node.first_end)), token));
            edge = next;
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, token)| token).collect()
    }

    /// Splits the strings of at most `len` tokens off `target`, for they now occur where the longer
    /// ones do not. `from` leads to them by `token`.
    fn split(&mut self, target: StateId, len: u32, from: StateId, token: TokenId) -> StateId {
        let Node {
            link,
            first_end,
            count,
            ..
        } = self.nodes[target as usize];
        let shorter = self.add(Node {
            len,
            link,
            first_end,
            count,
            edges: NONE,
        });
        let mut edge = self.nodes[target as usize].edges;
        while edge != NONE {
            let Edge {
                token, to, next, ..
            } = self.edges[edge as usize];
            self.connect(shorter, token, to);
            edge = next;
        }
        if let Some(step) = self.steps.last_mut() {
            step.split = Some((target, link));
        }
        self.nodes[target as usize].link = shorter;
        let mut state = from;
        while state != NONE {
            match self.lookup.get(&(state, token)) {
                Some(&edge) if self.edges[edge as usize].to == target => {
                    self.moved.push((edge, target));
                    self.edges[edge as usize].to = shorter;
                }
                _ => break,
            }
            state = self.nodes[state as usize].link;
        }
        shorter
    }

    fn add(&mut self, node: Node) -> StateId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as StateId
    }

    fn connect(&mut self, from: StateId, token: TokenId, to: StateId) {
        let edge = self.edges.len() as u32;
        let node = &mut self.nodes[from as usize];
        self.edges.push(Edge {
            from,
            token,
            to,
            next: node.edges,
        });
        node.edges = edge;
        self.lookup.insert((from, token), edge);
    }
}
