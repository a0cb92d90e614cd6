//! Which tokens temperature and cuts leave, and what they weigh, as far as a part of a row tells.
//!
//! With a_j the adjusted log probabilities, a token's weight is `exp((a_j - a) / T)`, a being the largest value that
//! any token may have. What the unknown tokens weigh together, Σ w_j, is bounded from their number m, their mass R at
//! temperature 1 and the largest probability P that any of them may have. In units of P the mass is ρ = R/P, from 0
//! to m, and each p_j/P is at most 1. Then
//!
//! - T < 1: `x^(1/T) <= x` on [0, 1], so Σ w_j is at most ρ w_P; the power mean makes it at least m (ρ/m)^(1/T) w_P;
//! - T > 1: the same two bounds, the other way round;
//! - T = 1: both are ρ w_P.
//!
//! Tokens that are lowered take at most P each off the mass that the others have.

use super::adjusted::{Adjusted, Unknown};
use crate::real::Real;
use crate::sampling::SamplingParams;

/// What is left after temperature, top-k, top-p and min-p. Tokens are those of the adjusted row, in its order.
#[derive(Clone, Debug)]
pub(super) struct Support {
    pub(super) temperature: f64,
    /// The value whose weight is 1.
    pub(super) scale: f64,
    /// So many of the first tokens are kept for sure.
    pub(super) sure: usize,
    /// So many of the first tokens may be kept; those after them are cut.
    pub(super) possible: usize,
    /// Whether unknown tokens may be kept.
    pub(super) open: bool,
    /// What is kept weighs so much.
    pub(super) total: WeightInterval,
    pub(super) weights: Vec<f64>,
}

impl Support {
    /// The support of `adjusted` (of `vocab_size` tokens) at a temperature above 0; none if what is known does not
    /// even tell the largest k or the largest one, where a cut goes by them.
    pub(super) fn of(
        adjusted: &Adjusted,
        params: &SamplingParams,
        vocab_size: usize,
    ) -> Option<Self> {
        let temperature = f64::from(params.temperature);
        let scale = adjusted.largest();
        let weight = |&(_, value): &(_, f64)| ((value - scale) / temperature).exp_nonpositive();
        let mut support = Self {
            temperature,
            scale,
            sure: adjusted.known.len(),
            possible: adjusted.known.len(),
            open: !adjusted.is_whole(),
            total: WeightInterval::exactly(0.0),
            weights: adjusted.known.iter().map(weight).collect(),
        };
        let k = params.top_k as usize;
        if k > 0 && k < vocab_size {
            support.cut_to_k(k, adjusted)?;
        }
        let sums = support.sums();
        let unknown = support.weight_of(adjusted.unknown);
        support.total = WeightInterval::exactly(sums[support.possible]);
        if support.open {
            support.total = support.total.plus(unknown.0, unknown.1);
        }
        if params.top_p < 1.0 {
            support.cut_to_mass(f64::from(params.top_p), &sums, adjusted);
        }
        if params.min_p > 0.0 {
            support.cut_below(f64::from(params.min_p), adjusted)?;
        }
        if params.top_p < 1.0 || params.min_p > 0.0 {
            support.total = WeightInterval::exactly(sums[support.sure]);
            if support.open || support.sure < support.possible {
                let more = sums[support.possible] - sums[support.sure];
                let unknown = if support.open { unknown.1 } else { 0.0 };
                support.total = support.total.plus(0.0, more + unknown);
            }
        }
        Some(support)
    }

    /// The k largest, known only if each is above every unknown one: among equals the lowest ids are kept, and
    /// unknown ones may be lower.
    fn cut_to_k(&mut self, k: usize, adjusted: &Adjusted) -> Option<()> {
        if self.open && adjusted.ahead() < k {
            return None;
        }
        self.open = false;
        self.sure = self.sure.min(k);
        self.possible = self.sure;
        Some(())
    }

    /// The fewest of the largest that weigh the fraction `top_p` of all: a token is kept if those before it weigh
    /// less. Of tokens before which unknown ones may come only a bound from below is known of what that is.
    fn cut_to_mass(&mut self, top_p: f64, sums: &[f64], adjusted: &Adjusted) {
        let before = &sums[..self.possible];
        let [least, most] = [self.total.least, self.total.most].map(|total| top_p * total);
        self.sure = before.partition_point(|&sum| sum < least);
        self.possible = before.partition_point(|&sum| sum < most);
        if self.open {
            let ahead = adjusted.ahead();
            self.sure = self.sure.min(ahead);
            self.open = sums[ahead] < most;
        }
    }

    /// Those at least `min_p` times as likely as the largest.
    fn cut_below(&mut self, min_p: f64, adjusted: &Adjusted) -> Option<()> {
        let largest = adjusted.largest();
        if adjusted
            .known
            .first()
            .is_none_or(|&(_, first)| first < largest)
        {
            return None;
        }
        let floor = min_p.ln_portable();
        let is_kept = |value: f64| (value - largest) / self.temperature >= floor;
        let kept = adjusted.known.partition_point(|&(_, value)| is_kept(value));
        self.sure = self.sure.min(kept);
        self.possible = self.possible.min(kept);
        self.open &= is_kept(adjusted.unknown.ceiling);
        Some(())
    }

    /// Returns what the first i tokens weigh, for each i.
    fn sums(&self) -> Vec<f64> {
        let mut sum = 0.0;
        let mut sums = vec![0.0];
        sums.extend(self.weights.iter().map(|weight| {
            sum += weight;
            sum
        }));
        sums
    }

    /// The least and the most that unknown tokens weigh together.
    fn weight_of(&self, unknown: Unknown) -> (f64, f64) {
        if !self.open {
            return (0.0, 0.0);
        }
        let count = unknown.count as f64;
        let largest = unknown.ceiling.exp_nonpositive();
        let (mut least, mut most) = (0.0, count);
        if largest > 0.0 {
            most = (unknown.mass.1 / largest).min(count);
            least = (unknown.mass.0 / largest - unknown.lowered as f64).clamp(0.0, most);
        }
        let power = self.temperature.recip();
        let each = ((unknown.ceiling - self.scale) * power).exp_nonpositive();
        let gathered = |mass: f64| mass * each;
        let spread =
            |mass: f64| count * ((mass / count).ln_portable() * power).exp_nonpositive() * each;
        if power > 1.0 {
            (spread(least), gathered(most))
        } else if power < 1.0 {
            (gathered(least), spread(most))
        } else {
            (gathered(least), gathered(most))
        }
    }
}

/// A number from `least` to `most`; known exactly where the two are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WeightInterval {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl WeightInterval {
    /// Part of a number by which sums of weights may differ where they are added up in another order or with
    /// weights of another scale; far more than they do.
    pub(super) const ROUNDING: f64 = 1e-9;

    /// A number that is known.
    pub(super) fn exactly(value: f64) -> Self {
        Self {
            least: value,
            most: value,
        }
    }

    /// Whether the number is known exactly.
    pub(super) fn is_exact(self) -> bool {
        self.least == self.most
    }

    /// The same number with another one from `least` to `most` added, and room for rounding.
    pub(super) fn plus(self, least: f64, most: f64) -> Self {
        Self {
            least: (self.least + least) * (1.0 - Self::ROUNDING),
            most: (self.most + most) * (1.0 + Self::ROUNDING),
        }
    }
}

#[cfg(test)]
mod tests;
