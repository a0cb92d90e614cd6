//! The decisions of one position, proved from a part of its row: every row that agrees with the part decides so. None
//! where more must be known, which is never so of a whole row.

use super::adjusted::Adjusted;
use super::noise_ranking::{NoiseRanking, TokenUniforms};
use super::partial_row::PartialRow;
use super::refusal::RowRefusal;
use super::support::Support;
use crate::TokenId;
use crate::history::History;
use crate::sampling::SamplingParams;

/// The sampling distribution at one output position, as far as a part of the row tells.
#[derive(Clone, Debug)]
pub struct PartialDistribution<'a> {
    pub(super) row: &'a PartialRow,
    pub(super) adjusted: Adjusted,
    /// None at temperature 0, where there are no weights.
    pub(super) at: Option<Tempered>,
}

/// The distribution above temperature 0.
#[derive(Clone, Debug)]
pub(super) enum Tempered {
    /// What is kept, and how it is weighed.
    Support(Support),
    /// More must be known to tell what is kept.
    Unknown,
}

impl<'a> PartialDistribution<'a> {
    /// The distribution that `params`, which were validated, make of `row` after `history`, at output position
    /// `position`.
    ///
    /// # Errors
    /// If log probabilities cannot tell it, a token that is raised is not known, or nothing may be drawn.
    pub fn of(
        row: &'a PartialRow,
        params: &SamplingParams,
        history: &History,
        position: u32,
    ) -> Result<Self, RowRefusal> {
        let adjusted = Adjusted::of(row, params, history, position)?;
        if adjusted.is_whole() && adjusted.known.is_empty() {
            return Err(RowRefusal::NoSupport);
        }
        let tempered = |adjusted: &Adjusted| {
            let support = Support::of(adjusted, params, row.vocab_size());
            support.map_or(Tempered::Unknown, Tempered::Support)
        };
        let at = (params.temperature > 0.0).then(|| tempered(&adjusted));
        Ok(Self { row, adjusted, at })
    }

    /// The token that is chosen over the whole vocabulary under the noise of `ranking`: what coupled verification
    /// emits, and with [`Noise::unshared`](crate::noise::Noise::unshared) the bonus token of token verification.
    pub fn choice<U: TokenUniforms>(&self, ranking: &NoiseRanking<U>) -> Option<TokenId> {
        match &self.at {
            None => self.most_likely(),
            Some(Tempered::Unknown) => None,
            Some(Tempered::Support(support)) => self.race(support, ranking),
        }
    }

    /// The most likely token, the lowest id among equals: proved if it is more likely than any unknown one.
    pub(super) fn most_likely(&self) -> Option<TokenId> {
        match self.adjusted.known.first() {
            Some(&(token, _)) if self.adjusted.ahead() > 0 => Some(token),
            _ => None,
        }
    }

    /// The token with the largest score among all that may be kept, if it is kept.
    fn race<U: TokenUniforms>(
        &self,
        support: &Support,
        ranking: &NoiseRanking<U>,
    ) -> Option<TokenId> {
        let mut best: Option<(f64, TokenId, usize)> = None;
        for (at, &(token, value)) in self.adjusted.known[..support.possible].iter().enumerate() {
            let score = self.score(support, value, ranking.noise(token));
            let is_better = best
                .is_none_or(|(best, lowest, _)| score > best || score == best && token < lowest);
            if is_better {
                best = Some((score, token, at));
            }
        }
        match best {
            Some((score, token, at))
                if at < support.sure && self.beats_unknown(support, score, ranking) =>
            {
                Some(token)
            }
            _ => None,
        }
    }

    /// `(a - ℓ_1) / T + G`: the logarithm of a weight, up to what all of them share, and noise.
    pub(super) fn score(&self, support: &Support, value: f64, noise: f64) -> f64 {
        (value - self.row.peak()) / support.temperature + noise
    }

    /// Whether `score` is larger than that of any unknown token, computed in the same way.
    pub(super) fn beats_unknown<U: TokenUniforms>(
        &self,
        support: &Support,
        score: f64,
        ranking: &NoiseRanking<U>,
    ) -> bool {
        if !support.open {
            return true;
        }
        let outside = ranking.largest_outside(|token| self.row.contains(token));
        let bound = |noise: f64| score > self.score(support, self.adjusted.unknown.ceiling, noise);
        outside.is_none_or(bound)
    }
}
