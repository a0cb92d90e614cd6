//! What a threshold would have been worth: the stopping loop, replayed over responses.
//!
//! What a block of K tokens emits is approximated by 1 + Σ_j Π_{i≤j} P_i, as if the probability that its
//! first j tokens stand were the product of their labels. It is not quite: the label of Y_2 was taken after
//! the response's own X_1, and in a round it would be after the accepted Y_1, which need not be X_1 and has
//! another distribution. The predictions that K comes from are along the response likewise. Every position is tried
//! as a start. Time is modelled as K t_draft + t_target.

use speculation::drafting::policies::LEARNED;
use speculation::drafting::{StopRule, Stopping};

/// Predictions and labels of consecutive positions of one response.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelledChain {
    /// Predicted probability of acceptance, `(positions)`.
    pub(crate) predicted: Vec<f32>,
    /// The label, `(positions)`.
    pub(crate) labels: Vec<f32>,
    /// Whether the response ended by itself after them, so that drafting would have too.
    pub(crate) ended: bool,
}

/// When a block ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StopAt {
    /// After this many tokens, at least 1.
    Fixed(usize),
    /// SpecDec++, algorithm 2, as drafters serve it ([`LEARNED`]): once the probability of a
    /// refusal among the tokens before exceeds the threshold, or at the cap.
    Refusal {
        /// Threshold h.
        threshold: f64,
        /// Most tokens, at least 1.
        cap: usize,
    },
}

/// What things cost, in any one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopCosts {
    /// Time of a draft forward.
    pub(crate) draft: f64,
    /// Time of a target forward.
    pub(crate) target: f64,
}

/// What a way to stop came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Replayed {
    /// Mean length of a block.
    pub(crate) draft_len: f64,
    /// Mean tokens a round emits, approximated.
    pub(crate) emitted: f64,
    /// Emitted tokens by unit of time; 0 if there was no place to start.
    pub(crate) rate: f64,
}

impl StopAt {
    /// Length of the block that would be drafted at these positions: predictions `(positions)` of its
    /// tokens, one after the other.
    pub(crate) fn draft_len(self, predicted: &[f32]) -> usize {
        match self {
            Self::Fixed(len) => len.min(predicted.len()),
            Self::Refusal { threshold, cap } => {
                let least = 1;
                let mut stopping =
                    Stopping::new(StopRule::new(&LEARNED, threshold).with_least(least));
                for &accept in predicted.iter().take(cap) {
                    if stopping.drawn() {
                        break;
                    }
                    // Told before the next token is drawn, and of no effect after the last.
                    stopping.predicted(accept.into());
                }
                stopping.len() as usize
            }
        }
    }

    /// The longest block.
    fn most(self) -> usize {
        match self {
            Self::Fixed(len) => len,
            Self::Refusal { cap, .. } => cap,
        }
    }
}

/// Replays a round from every position that has `window` more after it in the response, or its end: the
/// same places for all ways to stop whose longest block is within `window`. What a round emits is
/// approximated by products of labels, each taken after the response's tokens instead of those accepted.
pub(crate) fn replay(
    chains: &[LabelledChain],
    stop: StopAt,
    costs: StopCosts,
    window: usize,
) -> Replayed {
    let window = window.max(stop.most());
    let (mut rounds, mut drafted, mut emitted) = (0_usize, 0_usize, 0.0);
    for chain in chains {
        let len = chain.labels.len();
        let starts = if chain.ended {
            len
        } else {
            (len + 1).saturating_sub(window)
        };
        for start in 0..starts {
            let draft_len = stop.draft_len(&chain.predicted[start..]);
            let mut stands = 1.0;
            emitted += 1.0;
            for &label in &chain.labels[start..start + draft_len] {
                stands *= f64::from(label);
                emitted += stands;
            }
            rounds += 1;
            drafted += draft_len;
        }
    }
    if rounds == 0 {
        return Replayed::default();
    }
    let time = drafted as f64 * costs.draft + rounds as f64 * costs.target;
    Replayed {
        draft_len: drafted as f64 / rounds as f64,
        emitted: emitted / rounds as f64,
        rate: emitted / time,
    }
}
