//! One source of drafts at the coordinator: who proposes, what it guessed last, and what came of it.

use std::sync::Arc;

use speculation::TokenId;
use speculation::max_gram::MaxGram;

use super::Proposer;
use super::max_gram::CopiedDrafts;
use super::predicted::PredictedDrafts;
use crate::admitted::AdmittedRequest;
use crate::events::Proposed;

/// A source of drafts.
pub(super) struct Source {
    proposer: Box<dyn Proposer>,
    pub(super) figures: Proposed,
    /// Its latest guess: output position, token, and the probability that it claims.
    guess: Option<(usize, TokenId, f32)>,
}

/// What a proposal must be worth, as probabilities of standing: its first token, so that it is made at all, and each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    pub(super) first: f32,
    pub(super) each: f32,
}

impl Source {
    /// Returns those of `request`.
    pub(super) fn all_of(request: &AdmittedRequest) -> Vec<Self> {
        let mut proposers: Vec<Box<dyn Proposer>> = Vec::new();
        if !request.prediction.is_empty() {
            let predicted = PredictedDrafts::new(Arc::clone(&request.prediction));
            proposers.push(Box::new(predicted));
        }
        if request.copies {
            // Max-Gram searches the encoder's input before the output.
            proposers.push(Box::new(CopiedDrafts(MaxGram::new(request.source()))));
        }
        let sources = proposers.into_iter().map(|proposer| Self {
            figures: Proposed::nothing_by(proposer.name()),
            proposer,
            guess: None,
        });
        sources.collect()
    }

    /// Follows the sequence, `lead` and then `output`, while other work on this thread has its turns.
    pub(super) async fn follow(&mut self, lead: &[TokenId], output: &[TokenId]) {
        while self.proposer.follow(lead, output) {
            tokio::task::yield_now().await;
        }
    }

    /// Returns what it claimed of its latest guess, and whether `output` came to be that; none if there is no guess, or its
    /// place is yet to come.
    pub(super) fn judged(&mut self, output: &[TokenId]) -> Option<(f32, bool)> {
        let (at, token, survival) = self.guess.take()?;
        Some((survival, *output.get(at)? == token))
    }

    /// Returns at most `levels` tokens to follow an output of `len` tokens, each with the probability that it stands as far as
    /// `share` of what the source claims is believed; none if the first is not worth it.
    pub(super) fn chain(
        &mut self,
        len: usize,
        levels: u32,
        share: f32,
        least: Least,
    ) -> Option<Vec<(TokenId, f32)>> {
        let (token, survival) = self.proposer.propose(1).pop()?;
        self.guess = Some((len, token, survival));
        if survival * share < least.first {
            return None;
        }
        // A long proposal is costly to make, so it is made only for a first token that is believed.
        let chain = self.proposer.propose(levels as usize).into_iter();
        let chain = chain.map(|(token, survival)| (token, survival * share));
        let worth = chain.take_while(|(_, survival)| *survival >= least.each);
        Some(worth.collect())
    }
}
