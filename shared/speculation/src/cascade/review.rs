//! What one reviewer keeps of what smaller drafts proposed, position by position.

use super::emission::{Emission, acceptance_ratio, emitted};
use super::{CascadeToken, Emitter};
use crate::TokenId;
use crate::chance::{Chance, RoundChance};
use crate::coupled::choice;
use crate::noise::{InnerCall, Noise, Purpose};
use crate::proposal::{BadProposal, ProposalForm, ProposalProbs};
use crate::real::{Real, argmax};
use crate::verification::residual::residual;

/// The distributions of a draft model at one position.
#[derive(Debug)]
pub struct DraftDistributions<'a, F> {
    /// Its sampling distribution (vocab), which may be overwritten.
    pub probs: &'a mut [F],
    /// Its unscaled distribution (vocab); none if it is `probs` itself. Looked at where a lenient review is
    /// greedy.
    pub unscaled: Option<&'a [F]>,
}

/// The distributions of a draft model along a draft block.
pub trait DraftRows<F> {
    /// Why there are none.
    type Error: From<BadProposal>;

    /// The distributions after the first `offset` draft tokens. Asked for once each, in order.
    ///
    /// # Errors
    /// If the model's row gives no distribution.
    fn distributions(&mut self, offset: usize) -> Result<DraftDistributions<'_, F>, Self::Error>;
}

/// Makes the random decisions of the inner calls of one round.
pub trait CallChance<F> {
    /// Makes those of one call.
    type Chance<'a>: Chance<F>
    where
        Self: 'a;

    /// The decisions of `call`. Levels never share a draw: a token that is proposed and accepted by
    /// the same numbers would be biased.
    ///
    /// A level may be called at one start twice in a block, after a larger model took back what the
    /// first call gave, and draws the same again. That biases nothing: the larger model refused an earlier
    /// token before it looked at any of those, so nothing that stands depends on those draws.
    fn of(&mut self, call: InnerCall) -> Self::Chance<'_>;
}

/// The seeded decisions of the inner calls of one round.
#[derive(Clone, Copy, Debug)]
pub struct CallNoise {
    noise: Noise,
    base_len: u32,
}

impl CallNoise {
    /// Decisions of the round that starts after `base_len` output tokens.
    pub fn new(noise: Noise, base_len: u32) -> Self {
        Self { noise, base_len }
    }
}

impl<F: Real> CallChance<F> for CallNoise {
    type Chance<'a> = RoundChance;

    fn of(&mut self, call: InnerCall) -> RoundChance {
        RoundChance::new(self.noise, self.base_len, call)
    }
}

/// How the draft models review.
#[derive(Clone, Debug)]
pub enum Reviewing<C> {
    /// At temperature 0: a token stands if it is the most likely, or likely enough.
    Greedy,
    /// By distributions: for verifications that test a token against the distribution it was drawn from.
    Sampling {
        /// Makes the random decisions.
        chance: C,
        /// The form in which distributions are sent.
        form: ProposalForm,
    },
    /// By the noise that drafter and verifier share: a token stands if it is the reviewer's own
    /// choice, or near enough.
    Coupled {
        /// The noise.
        noise: Noise,
    },
}

/// A draft token, and what the next reviewer must know of it.
#[derive(Clone, Debug)]
pub(super) struct ProposedToken<F> {
    pub(super) token: CascadeToken<F>,
    /// Its unscaled probability with whoever emitted it; where a lenient review is greedy.
    probability: F,
}

/// A position under review.
pub(super) struct ReviewPosition {
    pub(super) call: InnerCall,
    /// Output tokens before the block.
    pub(super) base_len: u32,
    /// Draft tokens before the position.
    pub(super) offset: u32,
    pub(super) lenience: f64,
}

impl<F: Real> ProposedToken<F> {
    /// A token that Max-Gram proposes.
    pub(super) fn of_max_gram<C>(id: TokenId, reviewing: &Reviewing<C>) -> Self {
        Self {
            token: CascadeToken {
                id,
                emitter: Emitter::MaxGram,
                probs: match reviewing {
                    Reviewing::Greedy | Reviewing::Sampling { .. } => Emission::Point,
                    Reviewing::Coupled { .. } => Emission::NotKept,
                },
            },
            probability: F::one(),
        }
    }
}

impl ReviewPosition {
    /// The token that leaves the review: `proposed`, or another in its place; one that is added if
    /// nothing was proposed. `scratch` is overwritten.
    pub(super) fn review<F: Real, C: CallChance<F>>(
        &self,
        proposed: Option<&ProposedToken<F>>,
        distributions: &mut DraftDistributions<'_, F>,
        reviewing: &mut Reviewing<C>,
        scratch: &mut Vec<F>,
    ) -> Result<ProposedToken<F>, BadProposal> {
        let mut probability = F::zero();
        let (id, probs) = match reviewing {
            Reviewing::Greedy => {
                let id = self.greedy(proposed, distributions);
                probability = distributions.unscaled.unwrap_or(distributions.probs)[id as usize];
                (id, Emission::Point)
            }
            Reviewing::Coupled { noise } => (
                self.coupled(proposed, distributions.probs, noise),
                Emission::NotKept,
            ),
            Reviewing::Sampling { chance, form } => {
                let mut chance = chance.of(self.call);
                self.sampling(proposed, distributions.probs, *form, &mut chance, scratch)?
            }
        };
        Ok(ProposedToken {
            token: CascadeToken {
                id,
                emitter: Emitter::Model(usize::from(self.call.level)),
                probs,
            },
            probability,
        })
    }

    /// The lenience towards a proposed token: none for what nobody reviewed yet.
    fn lenience_for<F>(&self, draft: &ProposedToken<F>) -> f64 {
        match draft.token.emitter {
            Emitter::MaxGram => 1.0,
            Emitter::Model(_) => self.lenience,
        }
    }

    /// Keeps t if it is the most likely token, or `d(t) <= l · m(t)` with unscaled probabilities d of
    /// its emitter and m of the reviewer.
    fn greedy<F: Real>(
        &self,
        proposed: Option<&ProposedToken<F>>,
        distributions: &DraftDistributions<'_, F>,
    ) -> TokenId {
        if let Some(draft) = proposed {
            let lenience = self.lenience_for(draft);
            let found =
                distributions.unscaled.unwrap_or(distributions.probs)[draft.token.id as usize];
            if lenience > 1.0 && draft.probability.as_f64() <= lenience * found.as_f64() {
                return draft.token.id;
            }
        }
        argmax(distributions.probs) as TokenId
    }

    /// Keeps t if it is the reviewer's choice, or `E_t/m(t) <= l · min_v E_v/m(v)`.
    fn coupled<F: Real>(
        &self,
        proposed: Option<&ProposedToken<F>>,
        probs: &[F],
        noise: &Noise,
    ) -> TokenId {
        let position = self.base_len + self.offset;
        let chosen = choice(probs, noise, position);
        if let Some(draft) = proposed {
            let lenience = self.lenience_for(draft);
            let id = draft.token.id;
            let score = |token: TokenId| {
                -noise.coupled(position, token)[0].ln_portable() / probs[token as usize].as_f64()
            };
            if lenience > 1.0
                && probs[id as usize] > F::zero()
                && score(id) <= lenience * score(chosen)
            {
                return id;
            }
        }
        chosen
    }

    /// Keeps t with probability `min(1, l · m(t)/e(t))`, else draws from `norm((m - e)_+)`.
    fn sampling<F: Real>(
        &self,
        proposed: Option<&ProposedToken<F>>,
        probs: &mut [F],
        form: ProposalForm,
        chance: &mut impl Chance<F>,
        scratch: &mut Vec<F>,
    ) -> Result<(TokenId, Emission<F>), BadProposal> {
        let lenience = proposed.map_or(1.0, |draft| self.lenience_for(draft));
        // A distribution that is emitted unchanged may be cut first: the cut one is drawn from, and sent.
        let reported = (lenience == 1.0).then(|| ProposalProbs::of(probs, form));
        let Some(draft) = proposed else {
            let id = chance.token(Purpose::Bonus, self.offset, probs);
            return Ok((id, Emission::Sent(reported.unwrap_or_default())));
        };
        let id = draft.token.id;
        scratch.resize(probs.len(), F::zero());
        draft.token.probs.write_probs(id, scratch)?;
        let ratio = acceptance_ratio(scratch, probs, lenience, id);
        let emission = match reported {
            Some(reported) => Emission::Sent(reported),
            None => Emission::Lenient(emitted(scratch, probs, lenience)),
        };
        if chance.accepts(self.offset, ratio) {
            return Ok((id, emission));
        }
        residual(0.0, probs, scratch);
        let id = chance.token(Purpose::Residual, self.offset, scratch);
        Ok((id, emission))
    }
}
