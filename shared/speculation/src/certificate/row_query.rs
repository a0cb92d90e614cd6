//! How much of a row to ask for.
//!
//! A choice is unproved if the first arrival among the known tokens comes after the first that an unknown one could
//! make. With `E_j / p_j` as arrival times, the first of all is exponential with mean 1, whatever the distribution;
//! the N tokens of most noise being known, the least E of the others is about N/V, and an unknown token could arrive
//! from `N / (V p_K)` on. So the share that stays unproved is `exp(-N / (V p_K))`, p_K being the K-th largest
//! probability at the request's temperature.

use crate::real::Real;

/// What is asked of a row beside the tokens that must be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowQuery {
    /// K, the number of most likely tokens.
    pub top: usize,
    /// N, the number of tokens with the largest noise.
    pub noise: usize,
}

impl RowQuery {
    /// Where nothing is known of the distribution.
    pub const START: Self = Self {
        top: 256,
        noise: 128,
    };

    /// Where the most likely token is chosen, or all that may be drawn are asked for: enough to see that it is the only
    /// one, but where an engine rounds so that many are equal.
    pub const GREEDY: Self = Self { top: 8, noise: 0 };

    /// The whole of a row of `vocab_size` tokens.
    pub const fn whole(vocab_size: usize) -> Self {
        Self {
            top: vocab_size,
            noise: 0,
        }
    }

    /// The share of unproved choices that a start chosen by a draft distribution aims at, at most.
    pub const GOAL: f64 = 0.01;

    /// What may be chosen for the most likely tokens and for those of most noise.
    const STEPS: [usize; 5] = [64, 128, 256, 512, 1024];

    /// The start that takes the fewest entries a row where at most [`Self::GOAL`] is to stay unproved, if the target
    /// distribution at a position is like the draft model's: `draft_probs`, its sampling distribution, the largest
    /// first, as many as are at hand. What lies beyond them is continued as 1/rank.
    ///
    /// `rows` is the number of rows that share one list of tokens asked for: the tokens of most noise of all rows are
    /// then asked of each.
    pub fn for_draft(draft_probs: &[f64], vocab_size: usize, rows: usize) -> Self {
        let (at_hand, last) = (draft_probs.len().max(1), draft_probs.last());
        let last = last.copied().unwrap_or(1.0);
        let beyond = |top: usize| last * at_hand as f64 / top as f64;
        let probability = |top: usize| {
            let found = draft_probs.get(top - 1);
            found.copied().unwrap_or_else(|| beyond(top))
        };
        let entries = |query: &Self| query.top + rows.max(1) * query.noise;
        let all = Self::STEPS
            .into_iter()
            .flat_map(|top| Self::STEPS.map(|noise| Self { top, noise }));
        let enough = all.filter(|query| {
            unproved_share(vocab_size, probability(query.top), query.noise) <= Self::GOAL
        });
        let most = Self::STEPS[Self::STEPS.len() - 1];
        enough.min_by_key(entries).unwrap_or(Self {
            top: most,
            noise: most,
        })
    }

    /// Returns what to ask for where this left a decision unproved: four times as much, and the whole row where that is
    /// most of it.
    #[must_use]
    pub fn grown(self, vocab_size: usize) -> Self {
        let grown = Self {
            top: 4 * self.top.max(1),
            noise: 4 * self.noise.max(1),
        };
        if grown.top + grown.noise > vocab_size / 2 {
            return Self::whole(vocab_size);
        }
        grown
    }

    /// Whether the whole row is asked for.
    pub fn is_whole(self, vocab_size: usize) -> bool {
        self.top >= vocab_size
    }
}

/// The share of choices over `vocab_size` tokens that stay unproved where `noise` tokens of most noise are known and
/// no unknown token is more likely than `probability`, which is that of the sampling distribution.
pub fn unproved_share(vocab_size: usize, probability: f64, noise: usize) -> f64 {
    if probability <= 0.0 {
        return 0.0;
    }
    (-(noise as f64) / (vocab_size as f64 * probability)).exp_nonpositive()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sure_draft_model_asks_for_little_and_an_unsure_one_for_more_of_the_likely() {
        let sure: Vec<f64> = (0..2000).map(|rank| 0.5_f64.powi(rank + 1)).collect();
        let little = RowQuery { top: 64, noise: 64 };
        assert_eq!(RowQuery::for_draft(&sure, 32_768, 5), little);
        let unsure: Vec<f64> = (1..2000).map(|rank| 0.1 / f64::from(rank)).collect();
        let more = RowQuery::for_draft(&unsure, 32_768, 5);
        assert!(more.top > more.noise, "{more:?}");
        let share = unproved_share(32_768, unsure[more.top - 1], more.noise);
        assert!(share <= RowQuery::GOAL);
        // Its beginning says the same, being continued as it goes on.
        assert_eq!(RowQuery::for_draft(&unsure[..64], 32_768, 5), more);
        // One list a row makes noise as cheap as likely tokens.
        let apart = RowQuery::for_draft(&unsure, 32_768, 1);
        assert!(apart.top + apart.noise <= more.top + more.noise && apart.noise >= more.noise);
        // As many equals as can be asked for: the token chosen is then among the few of most noise.
        let plateau = [1.0 / 1024.0; 1024];
        let most = RowQuery {
            top: 64,
            noise: 1024,
        };
        assert_eq!(RowQuery::for_draft(&plateau, 151_936, 5), most);
    }

    #[test]
    fn asking_again_ends_with_the_whole_row() {
        for vocab_size in [1, 2, 5, 256, 4096, 151_936] {
            let mut query = RowQuery::START;
            let mut times = 0;
            while !query.is_whole(vocab_size) {
                let grown = query.grown(vocab_size);
                assert!(grown.is_whole(vocab_size) || grown.top == 4 * query.top);
                query = grown;
                times += 1;
            }
            assert!(times <= 5);
        }
    }

    #[test]
    fn nothing_stays_unproved_where_the_unknown_have_no_mass() {
        assert_eq!(unproved_share(100, 0.0, 0), 0.0);
        assert_eq!(unproved_share(100, 0.1, 0), 1.0);
        assert!((unproved_share(100, 0.01, 1) - f64::exp(-1.0)).abs() < 1e-15);
    }
}
