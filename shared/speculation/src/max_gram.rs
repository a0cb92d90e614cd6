//! Max-Gram: draft tokens without a model, from the longest earlier match of the context's end.
//!
//! Chen et al., "Cascade Speculative Drafting for Even Faster LLM Inference" (2024), §4.1 and
//! Listing 1: the longest suffix of the context that occurs earlier, the leftmost occurrence among
//! equals, proposes the tokens that follow it; the input of an encoder is searched first; where
//! there is nothing to copy, a table of bigrams goes on.

mod automaton;
mod bigram;

pub use bigram::{BadBigram, Bigram};

use crate::TokenId;
use automaton::{Automaton, Match};

/// The index of one context, kept with its session.
///
/// Pushing a token takes time independent of the context's length, amortised over a context that
/// only grows. Tokens that are taken back and pushed again are paid for again, each in the time of
/// its own push.
#[derive(Clone, Debug)]
pub struct MaxGram {
    tokens: Vec<TokenId>,
    own: Automaton,
    corpus: Corpus,
}

/// What is searched before the context itself.
#[derive(Clone, Debug)]
struct Corpus {
    tokens: Vec<TokenId>,
    automaton: Automaton,
    /// For each length of the context, the longest suffix of it that the corpus holds.
    matches: Vec<Match>,
}

impl MaxGram {
    /// The index of an empty context beside `corpus`: the encoder's input, or nothing.
    pub fn new(corpus: &[TokenId]) -> Self {
        let mut automaton = Automaton::new();
        for &token in corpus {
            automaton.push(token);
        }
        Self {
            tokens: Vec::new(),
            own: Automaton::new(),
            corpus: Corpus {
                tokens: corpus.to_vec(),
                automaton,
                matches: vec![Match::default()],
            },
        }
    }

    /// Length of the context in tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether the context is empty.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The context.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Adds a token to the context.
    pub fn push(&mut self, token: TokenId) {
        self.tokens.push(token);
        self.own.push(token);
        let corpus = &mut self.corpus;
        if !corpus.tokens.is_empty() {
            let before = corpus.matches.last().copied().unwrap_or_default();
            let longer = corpus.automaton.follow(before, token);
            corpus.matches.push(longer);
        }
    }

    /// Takes back all but the first `len` tokens; nothing if there are no more.
    pub fn truncate(&mut self, len: usize) {
        while self.tokens.len() > len {
            self.tokens.pop();
            self.own.pop();
        }
        self.corpus.matches.truncate(len + 1);
    }

    /// Makes the context `tokens`, keeping what it shares with the present one.
    pub fn reconcile(&mut self, tokens: &[TokenId]) {
        self.reconcile_by(tokens, usize::MAX).for_each(drop);
    }

    /// The same in pieces of `piece` tokens, so that whoever has other work can do it in between: each
    /// step adds one, and tells how many tokens are yet to come. The context is `tokens` after the last.
    pub fn reconcile_by<'m>(
        &'m mut self,
        tokens: &'m [TokenId],
        piece: usize,
    ) -> impl Iterator<Item = usize> + 'm {
        let pairs = self.tokens.iter().zip(tokens);
        let shared = pairs.take_while(|(one, other)| one == other).count();
        self.truncate(shared);
        tokens[shared..].chunks(piece.max(1)).map(move |piece| {
            for &token in piece {
                self.push(token);
            }
            tokens.len() - self.tokens.len()
        })
    }

    /// Exactly `count` tokens to follow the context, which stays as it is: what follows the match,
    /// then what follows the match of the context with these tokens, once, then bigrams.
    pub fn propose(&mut self, count: usize, bigram: &Bigram) -> Vec<TokenId> {
        let len = self.tokens.len();
        let mut proposal = self.continuation(count).to_vec();
        if !proposal.is_empty() && proposal.len() < count {
            for &token in &proposal {
                self.push(token);
            }
            proposal.extend_from_slice(self.continuation(count - proposal.len()));
            self.truncate(len);
        }
        let mut last = proposal.last().or(self.tokens.last()).copied();
        while proposal.len() < count {
            // Before the first token there is nothing to go by.
            let next = bigram.next(last.unwrap_or_default());
            proposal.push(next);
            last = Some(next);
        }
        proposal
    }

    /// Up to `count` tokens after the longest match: of the corpus, if it holds the last token with
    /// something after it, else of the context itself, where every match has something after it.
    fn continuation(&self, count: usize) -> &[TokenId] {
        let corpus = &self.corpus;
        let (text, end) = match corpus.automaton.first_end(corpus.matches.last()) {
            Some(end) if end + 1 < corpus.tokens.len() => (&corpus.tokens, end),
            _ => match self.own.earlier_end() {
                Some(end) => (&self.tokens, end),
                None => return &[],
            },
        };
        let following = &text[end + 1..];
        &following[..count.min(following.len())]
    }
}
