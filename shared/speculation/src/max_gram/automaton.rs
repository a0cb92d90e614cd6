//! A suffix automaton whose last token can be taken back.
//!
//! Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985), built online:
//! a state stands for the strings that occur at the same places, and its link leads to the longest
//! of their suffixes that also occurs elsewhere. The link of the whole text's state is therefore
//! the longest suffix that occurs earlier.

use std::collections::HashMap;

use crate::TokenId;

/// A state's index; 0 stands for the empty string.
type State = u32;

const ROOT: State = 0;
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    /// Length of its longest string, in tokens.
    len: u32,
    /// The state of the longest suffix that occurs elsewhere; none for the root.
    link: State,
    /// Where its strings end first, as an index into the text.
    first_end: u32,
    /// The transition made last; the others follow by [`Edge::next`].
    edges: u32,
}

#[derive(Clone, Debug)]
struct Edge {
    from: State,
    token: TokenId,
    to: State,
    next: u32,
}

/// What one push changed beside what it added.
#[derive(Clone, Debug)]
struct Step {
    nodes: u32,
    edges: u32,
    moved: u32,
    /// The state of the whole text before.
    whole: State,
    /// A state that was split, and its link before.
    split: Option<(State, State)>,
}

/// The longest suffix of a text that another text, the automaton's, holds: its state there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Match(State);

#[derive(Clone, Debug)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    lookup: HashMap<(State, TokenId), u32>,
    whole: State,
    steps: Vec<Step>,
    /// Edges led elsewhere, and where they led before, oldest first.
    moved: Vec<(u32, State)>,
}

impl Automaton {
    pub(super) fn new() -> Self {
        let root = Node {
            len: 0,
            link: NONE,
            first_end: NONE,
            edges: NONE,
        };
        Self {
            nodes: vec![root],
            edges: Vec::new(),
            lookup: HashMap::new(),
            whole: ROOT,
            steps: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// Adds `token` to the text.
    pub(super) fn push(&mut self, token: TokenId) {
        self.steps.push(Step {
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

    /// Where the longest suffix of the text that occurs earlier ends first, as an index into the
    /// text; none if its last token is new.
    pub(super) fn earlier_end(&self) -> Option<usize> {
        match self.nodes[self.whole as usize].link {
            ROOT | NONE => None,
            state => Some(self.nodes[state as usize].first_end as usize),
        }
    }

    /// The match of a text whose match was `before`, with `token` added.
    pub(super) fn follow(&self, before: Match, token: TokenId) -> Match {
        let Match(mut state) = before;
        loop {
            if let Some(&edge) = self.lookup.get(&(state, token)) {
                return Match(self.edges[edge as usize].to);
            }
            state = self.nodes[state as usize].link;
            if state == NONE {
                return Match::default();
            }
        }
    }

    /// Where the matched string ends first, as an index into the automaton's text; none if nothing
    /// is matched.
    pub(super) fn first_end(&self, found: Option<&Match>) -> Option<usize> {
        let Match(state) = *found.filter(|found| found.0 != ROOT)?;
        Some(self.nodes[state as usize].first_end as usize)
    }

    /// Splits the strings of at most `len` tokens off `target`, for they now occur where the longer
    /// ones do not. `from` leads to them by `token`.
    fn split(&mut self, target: State, len: u32, from: State, token: TokenId) -> State {
        let Node {
            link, first_end, ..
        } = self.nodes[target as usize];
        let shorter = self.add(Node {
            len,
            link,
            first_end,
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

    fn add(&mut self, node: Node) -> State {
        self.nodes.push(node);
        (self.nodes.len() - 1) as State
    }

    fn connect(&mut self, from: State, token: TokenId, to: State) {
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
