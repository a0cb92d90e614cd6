//! Max-Gram: draft tokens without a model, from the longest earlier match of the context's end.
//!
//! Chen et al., "Cascade Speculative Drafting for Even Faster LLM Inference" (2024), §4.1 and
//! Listing 1: the longest suffix of the context that occurs earlier, the leftmost occurrence among
//! equals, proposes the tokens that follow it; the input of an encoder is searched first; where
//! there is nothing to copy, a table of bigrams goes on, if there is one. Length and count of a match tell how sure it is ([`Sure`]).

mod automaton;
mod bigram;
mod hits;

pub use bigram::Bigram;

use crate::TokenId;
use automaton::{Automaton, Match, MatchedString};
use hits::{Evidence, Hits};

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
    hits: Hits,
}

/// A proposed token, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sure {
    /// The token.
    pub id: TokenId,
    /// Length of the match that speaks for it, the proposed tokens before it included; 0 for a bigram.
    pub match_len: u32,
    /// How often that match came before.
    pub match_count: u32,
    /// The estimated probability that it is accepted if those before it are.
    pub chance: f64,
}

impl Sure {
    /// A token for which nothing speaks.
    pub fn guess(id: TokenId) -> Self {
        Self {
            id,
            match_len: 0,
            match_count: 0,
            chance: 0.0,
        }
    }
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
            hits: Hits::default(),
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

    /// Makes the context `tokens`, keeping what it shares with the present one. Counts how often the match was right
    /// about the tokens that are new.
    pub fn reconcile(&mut self, tokens: &[TokenId]) {
        self.reconcile_by(tokens, usize::MAX).for_each(drop);
    }

    /// Adds tokens to the context. Counts how often the match was right about them.
    pub fn append(&mut self, tokens: &[TokenId]) {
        for &token in tokens {
            self.learn(token);
            self.push(token);
        }
    }

    /// The same as [`Self::reconcile`] in pieces of `piece` tokens, so that whoever has other work can do it in between: each
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
            self.append(piece);
            tokens.len() - self.tokens.len()
        })
    }

    /// Returns `count` tokens to follow the context, which stays as it is: what follows the match,
    /// then what follows the match of the context with these tokens, once, then bigrams. They are fewer only where
    /// the table of bigrams is empty.
    pub fn propose(&mut self, count: usize, bigram: &Bigram) -> Vec<TokenId> {
        let proposal = self.propose_sure(count, bigram).into_iter();
        proposal.map(|sure| sure.id).collect()
    }

    /// The same tokens, each with how sure it is.
    pub fn propose_sure(&mut self, count: usize, bigram: &Bigram) -> Vec<Sure> {
        let len = self.tokens.len();
        let mut proposal = self.sure_continuation(count);
        if !proposal.is_empty() && proposal.len() < count {
            for sure in &proposal {
                self.push(sure.id);
            }
            proposal.extend(self.sure_continuation(count - proposal.len()));
            self.truncate(len);
        }
        let proposed = proposal.last().map(|sure| sure.id);
        let mut last = proposed.or(self.tokens.last().copied());
        while proposal.len() < count {
            // Before the first token there is nothing to go by.
            let Some(next) = bigram.next(last.unwrap_or_default()) else {
                break;
            };
            proposal.push(self.sure(next, Evidence::default()));
            last = Some(next);
        }
        proposal
    }

    /// For each of `proposal`, tokens to follow the context, at most `most` others that followed its match too: the most
    /// frequent first, among equals the newest. The context stays as it is.
    pub fn alternatives(&mut self, proposal: &[TokenId], most: usize) -> Vec<Vec<TokenId>> {
        let len = self.tokens.len();
        let mut beside = Vec::with_capacity(proposal.len());
        for &lead in proposal {
            let mut following = self.following();
            following.retain(|&token| token != lead);
            following.truncate(most);
            beside.push(following);
            self.push(lead);
        }
        self.truncate(len);
        beside
    }

    /// The tokens that followed the match, the best first; none without a match.
    fn following(&self) -> Vec<TokenId> {
        self.matched()
            .map(|(_, automaton, found)| automaton.following(&found))
            .unwrap_or_default()
    }

    /// Counts whether the match is right about the next token, `token`.
    fn learn(&mut self, token: TokenId) {
        let Some((following, found)) = self.continuation(1) else {
            return;
        };
        let (is_right, evidence) = (following[0] == token, found.evidence(0));
        self.hits.observe(evidence, is_right);
    }

    fn sure(&self, id: TokenId, evidence: Evidence) -> Sure {
        Sure {
            id,
            match_len: evidence.len,
            match_count: evidence.count,
            chance: self.hits.chance(evidence),
        }
    }

    fn sure_continuation(&self, count: usize) -> Vec<Sure> {
        let Some((following, found)) = self.continuation(count) else {
            return Vec::new();
        };
        let following = following.iter().zip(0..);
        following
            .map(|(&id, at)| self.sure(id, found.evidence(at)))
            .collect()
    }

    /// Up to `count` tokens after the longest match: of the corpus, if it holds the last token with
    /// something after it, else of the context itself, where every match has something after it. None without a match.
    fn continuation(&self, count: usize) -> Option<(&[TokenId], MatchedString)> {
        let (text, _, found) = self.matched()?;
        let following = &text[found.first_end + 1..];
        Some((&following[..count.min(following.len())], found))
    }

    /// The longest match that something follows, with the text it is in and the text's automaton.
    fn matched(&self) -> Option<(&[TokenId], &Automaton, MatchedString)> {
        let corpus = &self.corpus;
        match corpus.automaton.found(corpus.matches.last()) {
            Some(found) if found.first_end + 1 < corpus.tokens.len() => {
                Some((&corpus.tokens, &corpus.automaton, found))
            }
            _ => Some((&self.tokens, &self.own, self.own.earlier()?)),
        }
    }
}

impl MatchedString {
    /// Returns what speaks for the token that stands `at` tokens behind the match.
    fn evidence(&self, at: u32) -> Evidence {
        Evidence {
            len: self.len.saturating_add(at),
            count: self.count,
        }
    }
}
