//! Cascades of drafters: each draft model reviews what the smaller ones proposed.
//!
//! Chen et al., "Cascade Speculative Drafting for Even Faster LLM Inference" (2024), Algorithm 1. In
//! the vertical cascade a draft model does not draft token by token but reviews, as a target would,
//! what smaller models drafted, down to Max-Gram. In the horizontal cascade the later tokens of a
//! block, which are less likely to be accepted, are drafted by smaller models. A matrix K tells how
//! many tokens each reviewer wants of whom.
//!
//! The target's own review is none of this module's: what comes out is a draft block, with the distribution
//! each token was emitted by. Lenience, which lets a reviewer keep tokens that it finds too unlikely,
//! is for the reviews within the cascade, so the output stays exact.
//!
//! | module | what it holds |
//! |---|---|
//! | [`CascadeConfig`] | the matrix K, the lenience, and their limits |
//! | [`Reviewing`] | what one reviewer keeps of what it was proposed |
//! | [`emission`] | the distribution by which a token left its last reviewer |

mod config;
pub mod emission;
pub mod ewif;
mod review;

pub use config::{CascadeConfig, CascadeSettings};
pub use emission::Emission;
pub use review::{CallChance, CallNoise, DraftDistributions, DraftRows, Reviewing};

use std::sync::Arc;

use crate::TokenId;
use crate::bad_value::BadValue;
use crate::max_gram::{Bigram, MaxGram};
use crate::noise::InnerCall;
use crate::real::Real;
use review::{ProposedToken, ReviewPosition};

/// Who emitted a draft token last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Emitter {
    /// Max-Gram: nobody reviewed the token.
    MaxGram,
    /// The draft model of this level; 1 is the largest.
    Model(usize),
}

/// A draft token of a cascade.
#[derive(Clone, Debug, PartialEq)]
pub struct CascadeToken<F> {
    /// The token.
    pub id: TokenId,
    /// Who emitted it last.
    pub emitter: Emitter,
    /// The distribution it was emitted by.
    pub probs: Emission<F>,
}

/// What a cascade wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CascadeStep {
    /// A forward of the draft model `level`, with the distributions after the first `from`, `from + 1`, …
    /// draft tokens, `rows` of them, on the sequence of the context and [`Cascade::tokens`]. Then
    /// [`Cascade::supply`].
    Score {
        /// Which model, 1 for the largest.
        level: usize,
        /// Draft tokens before the first position wanted.
        from: usize,
        /// Positions wanted, at least 1. Where all of the proposed tokens end the output or fill the
        /// block, the one after them is not among them.
        rows: usize,
    },
    /// Nothing: the draft block is whole.
    Done,
}

/// What a draft block is to be, beside the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockLimits {
    /// Output tokens before the block.
    pub base_len: u32,
    /// Most tokens of the block.
    pub max_tokens: usize,
    /// Tokens that end the output.
    pub ends: Vec<TokenId>,
}

/// Max-Gram's index of the context and its table.
#[derive(Debug)]
pub struct Grams<'a> {
    /// The index. It holds prompt and output whenever the cascade is not at work, and is left so.
    pub index: &'a mut MaxGram,
    /// The table.
    pub bigram: &'a Bigram,
}

/// A call whose tokens are being drafted or reviewed.
#[derive(Clone, Copy, Debug)]
struct ReviewCall {
    /// Level of the reviewer; 0 is the target, whose review is not ours.
    reviewer: usize,
    /// Draft tokens before the call.
    start: usize,
}

/// One draft block in the making, without I/O: [`Cascade::next`] says which forward is wanted,
/// [`Cascade::supply`] takes its distributions, [`Cascade::finish`] gives the block.
#[derive(Clone, Debug)]
pub struct Cascade<F, C = CallNoise> {
    config: Arc<CascadeConfig>,
    reviewing: Reviewing<C>,
    block: BlockLimits,
    ids: Vec<TokenId>,
    drafts: Vec<ProposedToken<F>>,
    /// The calls under way, the target's first.
    calls: Vec<ReviewCall>,
    /// Calls of each draft so far.
    counts: Vec<u32>,
    scratch: Vec<F>,
}

impl<F: Real, C: CallChance<F>> Cascade<F, C> {
    /// An empty block.
    ///
    /// # Errors
    /// If the requested form cannot carry the distributions: see [`CascadeConfig::check_form`].
    pub fn new(
        config: Arc<CascadeConfig>,
        reviewing: Reviewing<C>,
        block: BlockLimits,
    ) -> Result<Self, BadValue> {
        if let Reviewing::Sampling { form, .. } = &reviewing {
            config.check_form(*form)?;
        }
        let target = ReviewCall {
            reviewer: 0,
            start: 0,
        };
        Ok(Self {
            counts: vec![0; config.drafts()],
            config,
            reviewing,
            block,
            ids: Vec::new(),
            drafts: Vec::new(),
            calls: vec![target],
            scratch: Vec::new(),
        })
    }

    /// The draft tokens so far. Those a reviewer did not look at yet may go again.
    pub fn tokens(&self) -> &[TokenId] {
        &self.ids
    }

    /// Who emitted each of the draft tokens so far last.
    pub fn emitters(&self) -> impl Iterator<Item = Emitter> + '_ {
        self.drafts.iter().map(|draft| draft.token.emitter)
    }

    /// Calls so far of each draft model, the largest first, then of Max-Gram if it is one of the
    /// drafts. A model's call is one forward.
    pub fn calls(&self) -> &[u32] {
        &self.counts
    }

    /// Returns what is wanted next, after Max-Gram proposed what it is asked for. The same again until
    /// [`Cascade::supply`].
    ///
    /// # Panics
    /// If it is Max-Gram's turn and `grams` is none.
    pub fn next(&mut self, mut grams: Option<Grams<'_>>) -> CascadeStep {
        let context_len = grams.as_ref().map_or(0, |grams| grams.index.len());
        // How many of the tokens the index holds behind the context.
        let mut indexed = 0;
        while let Some(draft) = self.wanted_draft() {
            if self.config.is_max_gram(draft) {
                let Grams { index, bigram } = grams.as_mut().expect("Max-Gram's index and table");
                for &token in &self.ids[indexed..] {
                    index.push(token);
                }
                indexed = self.ids.len();
                let room = self.block.max_tokens - self.ids.len();
                let count = room.min(self.config.mag_tokens() as usize);
                let proposal = index.propose(count, bigram);
                self.counts[draft] += 1;
                for id in proposal {
                    self.push(ProposedToken::of_max_gram(id, &self.reviewing));
                    if self.block.ends.contains(&id) {
                        break;
                    }
                }
            } else {
                self.calls.push(ReviewCall {
                    reviewer: draft + 1,
                    start: self.ids.len(),
                });
            }
        }
        if let Some(grams) = grams {
            grams.index.truncate(context_len);
        }
        let call = self.calls[self.calls.len() - 1];
        if call.reviewer == 0 {
            return CascadeStep::Done;
        }
        CascadeStep::Score {
            level: call.reviewer,
            from: call.start,
            rows: self.ids.len() - call.start + usize::from(!self.is_whole()),
        }
    }

    /// Takes the distributions that [`CascadeStep::Score`] asked for, and lets their model review. Rows beyond the
    /// first refusal are not asked for.
    ///
    /// `reviewed` sees the distributions of the largest draft model at each token that it emits, with the
    /// token's index in the block: its siblings in a tree are of this distribution.
    ///
    /// # Errors
    /// Whatever `rows` fails with, or if its distributions are of another vocabulary than those of a smaller
    /// model; the block is then of no use any more.
    ///
    /// # Panics
    /// If nothing was asked for.
    pub fn supply<R: DraftRows<F>>(
        &mut self,
        rows: &mut R,
        mut reviewed: impl FnMut(usize, &DraftDistributions<'_, F>),
    ) -> Result<(), R::Error> {
        let call = self.calls[self.calls.len() - 1];
        assert!(call.reviewer > 0, "no distributions were asked for");
        self.calls.pop();
        self.counts[call.reviewer - 1] += 1;
        // A block that ends with what is proposed takes no token after it.
        let positions = self.ids.len() + usize::from(!self.is_whole());
        for offset in call.start..positions {
            let mut distributions = rows.distributions(offset)?;
            if call.reviewer == 1 {
                reviewed(offset, &distributions);
            }
            let place = ReviewPosition {
                call: InnerCall {
                    level: call.reviewer as u8,
                    start: call.start as u16,
                },
                base_len: self.block.base_len,
                offset: offset as u32,
                lenience: self.config.lenience(),
            };
            let proposed = self.drafts.get(offset);
            let emitted = place.review(
                proposed,
                &mut distributions,
                &mut self.reviewing,
                &mut self.scratch,
            )?;
            if self.ids.get(offset) == Some(&emitted.token.id) {
                self.drafts[offset] = emitted;
                continue;
            }
            self.ids.truncate(offset);
            self.drafts.truncate(offset);
            self.push(emitted);
            break;
        }
        Ok(())
    }

    /// The draft block, once [`Cascade::next`] said that it is whole.
    ///
    /// # Panics
    /// If it is not.
    pub fn finish(self) -> Vec<CascadeToken<F>> {
        assert!(
            self.calls.len() == 1 && self.wanted_draft().is_none(),
            "the draft block is not whole"
        );
        self.drafts.into_iter().map(|draft| draft.token).collect()
    }

    /// Whether no token can follow: the output ends, or the block is full.
    fn is_whole(&self) -> bool {
        let ended = self
            .ids
            .last()
            .is_some_and(|last| self.block.ends.contains(last));
        ended || self.ids.len() >= self.block.max_tokens
    }

    /// The draft, as a column of K, whose turn it is in the innermost call; none if the call's
    /// reviewer is to look at what there is.
    fn wanted_draft(&self) -> Option<usize> {
        let call = self.calls[self.calls.len() - 1];
        if self.is_whole() {
            return None;
        }
        let added = self.ids.len() - call.start;
        (call.reviewer..self.config.drafts())
            .find(|&draft| added < self.config.threshold(call.reviewer, draft))
    }

    fn push(&mut self, draft: ProposedToken<F>) {
        self.ids.push(draft.token.id);
        self.drafts.push(draft);
    }
}
