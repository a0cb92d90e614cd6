//! Token verification from a part of a row: the test of a draft token, and what replaces a refused one.

use super::distribution::{PartialDistribution, Tempered};
use super::noise_ranking::{NoiseRanking, TokenUniforms};
use super::refusal::RowRefusal;
use super::support::Support;
use crate::TokenId;
use crate::real::Real;

/// More than the rounding of a score whose weight is known only between two bounds.
const ROUNDING: f64 = 1e-12;

/// What is known of a score.
#[derive(Clone, Copy, Debug)]
struct Score {
    token: TokenId,
    least: f64,
    most: f64,
}

impl PartialDistribution<'_> {
    /// Whether the draft token `token`, drawn with the probability `draft_prob`, passes the test whose uniform is
    /// `eta`: `eta < π(token) / draft_prob`.
    ///
    /// With w the token's weight and Z that of all that is kept, π = w/Z. It is proved if both ends of Z decide
    /// alike; none where they do not, and more must be known.
    ///
    /// # Errors
    /// If the token is not known.
    pub fn accepts(
        &self,
        token: TokenId,
        draft_prob: f64,
        eta: f64,
    ) -> Result<Option<bool>, RowRefusal> {
        self.check_known(token)?;
        let position = (self.adjusted.known.iter()).position(|&(known, _)| known == token);
        let Some(at) = position else {
            return Ok(Some(false));
        };
        let support = match &self.at {
            None if at > 0 => return Ok(Some(false)),
            None => return Ok(self.most_likely().map(|_| eta * draft_prob < 1.0)),
            Some(Tempered::Unknown) => return Ok(None),
            Some(Tempered::Support(support)) => support,
        };
        if at >= support.possible {
            return Ok(Some(false));
        }
        let weight = support.weights[at];
        let passes = |total: f64| eta * draft_prob * total < weight;
        Ok(if at < support.sure && passes(support.total.most) {
            Some(true)
        } else if !passes(support.total.least) {
            Some(false)
        } else {
            None
        })
    }

    /// The token that replaces a refused draft token: drawn from the residual `norm((π - q)_+)` as the largest of
    /// scores, under noise that no drafter has. `draft` holds the support of q and its probabilities, ascending by
    /// token. Where the residual of a whole row has no mass it is drawn from π.
    ///
    /// # Errors
    /// If a token of `draft` is not known.
    ///
    /// # Panics
    /// In debug builds, if `draft` is not ascending.
    pub fn residual<U: TokenUniforms>(
        &self,
        draft: &[(TokenId, f64)],
        ranking: &NoiseRanking<U>,
    ) -> Result<Option<TokenId>, RowRefusal> {
        debug_assert!(draft.is_sorted_by(|a, b| a.0 < b.0));
        for &(token, draft_prob) in draft {
            if draft_prob > 0.0 {
                self.check_known(token)?;
            }
        }
        let support = match &self.at {
            None => return Ok(self.most_likely()),
            Some(Tempered::Unknown) => return Ok(None),
            Some(Tempered::Support(support)) => support,
        };
        let kept = &self.adjusted.known[..support.possible];
        let scores: Vec<Score> = (0..kept.len())
            .map(|at| {
                let drafted = draft.binary_search_by_key(&kept[at].0, |&(token, _)| token);
                let draft_prob = drafted.map_or(0.0, |found| draft[found].1);
                self.score_of_excess(support, at, draft_prob, ranking)
            })
            .collect();
        let found = self.surely_largest(support, &scores, ranking);
        let is_empty = scores.iter().all(|score| score.most == f64::NEG_INFINITY);
        Ok(match found {
            None if is_empty && !support.open => self.choice(ranking),
            found => found,
        })
    }

    /// The score of `(w - Z q)_+`, in the scale of the scores of weights.
    fn score_of_excess<U: TokenUniforms>(
        &self,
        support: &Support,
        at: usize,
        draft_prob: f64,
        ranking: &NoiseRanking<U>,
    ) -> Score {
        let (token, value) = self.adjusted.known[at];
        let noise = ranking.noise(token);
        let [least, most] = if draft_prob > 0.0 {
            let score = |total: f64| {
                let excess = (support.weights[at] - total * draft_prob).max(0.0);
                self.score(support, support.scale, noise) + excess.ln_portable()
            };
            let (least, most) = (score(support.total.most), score(support.total.least));
            if support.total.is_exact() {
                [least, most]
            } else {
                [least - ROUNDING, most + ROUNDING]
            }
        } else {
            [self.score(support, value, noise); 2]
        };
        Score {
            token,
            least: if at < support.sure {
                least
            } else {
                f64::NEG_INFINITY
            },
            most,
        }
    }

    /// The token whose score is larger than every other, or that is the lowest among equals.
    fn surely_largest<U: TokenUniforms>(
        &self,
        support: &Support,
        scores: &[Score],
        ranking: &NoiseRanking<U>,
    ) -> Option<TokenId> {
        let best = scores.iter().copied().reduce(|best, score| {
            let is_better =
                score.least > best.least || score.least == best.least && score.token < best.token;
            if is_better { score } else { best }
        })?;
        let is_below = |score: &Score| {
            score.most < best.least
                || score.most == best.least && score.least == score.most
                || score.token == best.token
        };
        let is_proved = best.least > f64::NEG_INFINITY
            && scores.iter().all(is_below)
            && self.beats_unknown(support, best.least, ranking);
        is_proved.then_some(best.token)
    }

    fn check_known(&self, token: TokenId) -> Result<(), RowRefusal> {
        if self.row.contains(token) {
            Ok(())
        } else {
            Err(RowRefusal::NotKnown(token))
        }
    }
}
