//! A part of a row of log probabilities, checked.

use crate::TokenId;
use crate::logprobs::{Likely, TokenLogprobs};
use crate::real::Real;

/// What an engine returned of one row: the K most likely tokens and some that were asked for.
///
/// It stands for every row that agrees with it, and so bounds what it does not hold: no unknown log probability is
/// above the K-th largest, and all probabilities together are 1 up to the `mass_error` of [`Self::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct PartialRow {
    vocab_size: usize,
    /// The likeliest first, the lowest ids among equals first.
    known: Vec<Likely>,
    /// Ascending.
    ids: Vec<TokenId>,
    ceiling: f64,
    peak: f64,
    known_mass: f64,
    mass_error: f64,
}

/// A part of a row that says nothing about a distribution, or contradicts itself, and in what.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("row {0}")]
pub struct BadRow(String);

impl PartialRow {
    /// How far from 1 the sum of all probabilities may be where an engine computes log probabilities in single
    /// precision, whatever its logits were rounded to.
    pub const SINGLE_PRECISION: f64 = 1e-4;

    /// The row of which an engine returned the `expected` most likely tokens, `top`, the likeliest first, and the
    /// log probabilities `asked`, in any order; a token may stand in both. Log probabilities are natural, at
    /// temperature 1; `vocab_size` is the length of the whole row, and the sum of all its probabilities is within
    /// `mass_error` of 1.
    ///
    /// `expected` may be 0, and more than the vocabulary has is all of it.
    ///
    /// # Errors
    /// If entries are missing, out of range, out of order, repeated or no log probabilities, or if no row of which
    /// this is a part is a distribution.
    pub fn new(
        vocab_size: usize,
        expected: usize,
        top: &[Likely],
        asked: &[Likely],
        mass_error: f64,
    ) -> Result<Self, BadRow> {
        let expected = expected.min(vocab_size);
        if top.len() != expected {
            let found = top.len();
            return Err(BadRow(format!(
                "holds {found} most likely tokens, expected {expected}"
            )));
        }
        let most = mass_error.ln_1p();
        for &Likely { token, logprob } in top.iter().chain(asked) {
            if token as usize >= vocab_size {
                return Err(BadRow(format!(
                    "holds token {token}, outside of a vocabulary of {vocab_size}"
                )));
            }
            // NaN is not at most anything.
            if !matches!(
                logprob.partial_cmp(&most),
                Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
            ) {
                return Err(BadRow(format!(
                    "holds {logprob} as the log probability of token {token}, expected at most 0"
                )));
            }
        }
        if let Some(pair) = (top.windows(2)).find(|pair| pair[0].logprob < pair[1].logprob) {
            let token = pair[1].token;
            return Err(BadRow(format!(
                "holds token {token} after a less likely one"
            )));
        }
        let top_ids = ascending(top)?;
        let asked_ids = ascending(asked)?;
        let ceiling = top.last().map_or(most, |last| last.logprob);
        let mut known = top.to_vec();
        for likely in asked {
            if top_ids.binary_search(&likely.token).is_err() {
                if likely.logprob > ceiling {
                    let token = likely.token;
                    let problem = format!("leaves token {token} out of the most likely ones");
                    return Err(BadRow(problem));
                }
                known.push(*likely);
            }
        }
        if known.len() < top.len() + asked.len() {
            check_agreement(top, asked, &asked_ids)?;
        }
        known.sort_unstable_by(by_likelihood);
        let row = Self {
            vocab_size,
            ids: merged(top_ids, asked_ids),
            known_mass: (known.iter().rev())
                .map(|likely| likely.logprob.exp_nonpositive())
                .sum(),
            known,
            ceiling,
            peak: top.first().map_or(0.0, |first| first.logprob),
            mass_error,
        };
        row.check_mass()?;
        Ok(row)
    }

    /// A row that is known whole: `logprobs` (vocab).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn whole(logprobs: &[f64], mass_error: f64) -> Result<Self, BadRow> {
        let entries = logprobs.iter().enumerate();
        let mut top: Vec<Likely> = entries
            .map(|(token, &logprob)| Likely {
                token: token as TokenId,
                logprob,
            })
            .collect();
        top.sort_unstable_by(by_likelihood);
        Self::new(top.len(), top.len(), &top, &[], mass_error)
    }

    /// The same row over the first `vocab_size` tokens: those behind them pad the model's rows and are never drawn. What
    /// they may weigh is missing from the mass.
    #[must_use]
    pub fn within(mut self, vocab_size: usize) -> Self {
        let padding = self.vocab_size.saturating_sub(vocab_size);
        if padding == 0 {
            return self;
        }
        let is_within = |token: TokenId| (token as usize) < vocab_size;
        let mass_of = |likely: &Likely| likely.logprob.exp_nonpositive();
        let padded = self.known.iter().filter(|likely| !is_within(likely.token));
        let (known, mass) = padded.fold((0, 0.0), |(count, mass), likely| {
            (count + 1, mass + mass_of(likely))
        });
        let unknown = (padding - known) as f64 * self.ceiling.exp_nonpositive();
        self.mass_error += mass + unknown;
        self.known.retain(|likely| is_within(likely.token));
        self.ids.retain(|&token| is_within(token));
        self.known_mass = self.known.iter().rev().map(mass_of).sum();
        self.vocab_size = vocab_size;
        self
    }

    /// Length of the whole row.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Whether every token is known.
    pub fn is_whole(&self) -> bool {
        self.known.len() == self.vocab_size
    }

    /// Returns what is known, the likeliest first, the lowest ids among equals first.
    pub fn known(&self) -> &[Likely] {
        &self.known
    }

    /// The log probabilities of `token`, which must be known, and of the `top` most likely tokens, as many as are
    /// known. There are no logits that a normaliser could be taken from: it is 0.
    ///
    /// # Panics
    /// If the token is not known.
    pub fn logprobs(&self, token: TokenId, top: usize) -> TokenLogprobs {
        let found = self.known.iter().find(|likely| likely.token == token);
        TokenLogprobs {
            logprob: found.expect("a known token").logprob,
            top: self.known[..top.min(self.known.len())].to_vec(),
            normaliser: 0.0,
        }
    }

    /// Number of tokens that are not known.
    pub fn unknown(&self) -> usize {
        self.vocab_size - self.known.len()
    }

    /// Whether `token` is known.
    pub fn contains(&self, token: TokenId) -> bool {
        self.ids.binary_search(&token).is_ok()
    }

    /// ℓ_K: no unknown log probability is larger.
    pub fn ceiling(&self) -> f64 {
        self.ceiling
    }

    /// ℓ_1, the largest log probability; 0 where no most likely tokens were asked for. However much is known of a
    /// row with most likely tokens, this is the same.
    pub fn peak(&self) -> f64 {
        self.peak
    }

    /// The least and the most mass that the unknown tokens have together.
    pub fn unknown_mass(&self) -> (f64, f64) {
        if self.is_whole() {
            return (0.0, 0.0);
        }
        let most = self.unknown() as f64 * self.ceiling.exp_nonpositive();
        let rest = 1.0 - self.known_mass;
        let [least, largest] = [-self.mass_error, self.mass_error].map(|error| rest + error);
        (least.max(0.0), largest.min(most).max(0.0))
    }

    /// Checks that the unknown tokens can make up for what is missing of the mass.
    fn check_mass(&self) -> Result<(), BadRow> {
        let known = self.known_mass;
        let most = self.unknown() as f64 * self.ceiling.exp_nonpositive();
        let (least, largest) = (1.0 - self.mass_error, 1.0 + self.mass_error);
        // Adding up rounds, too.
        let rounding = 1e-9;
        if known > largest + rounding || known + most < least - rounding {
            return Err(BadRow(format!(
                "has probabilities of {known} in all, and at most {most} where it is unknown"
            )));
        }
        Ok(())
    }
}

fn by_likelihood(a: &Likely, b: &Likely) -> std::cmp::Ordering {
    let order = b.logprob.partial_cmp(&a.logprob);
    (order.unwrap_or(std::cmp::Ordering::Equal)).then(a.token.cmp(&b.token))
}

/// The ids of `entries`, ascending, if none stands there twice.
fn ascending(entries: &[Likely]) -> Result<Vec<TokenId>, BadRow> {
    let mut ids: Vec<TokenId> = entries.iter().map(|likely| likely.token).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(BadRow(format!("holds token {} twice", pair[0]))),
        None => Ok(ids),
    }
}

/// Checks that a token which stands in `top` and in `asked` has one log probability.
fn check_agreement(top: &[Likely], asked: &[Likely], asked_ids: &[TokenId]) -> Result<(), BadRow> {
    let shared = top
        .iter()
        .filter(|likely| asked_ids.binary_search(&likely.token).is_ok());
    let mut shared: Vec<Likely> = shared.copied().collect();
    shared.sort_unstable_by_key(|likely| likely.token);
    for likely in asked {
        if let Ok(at) = shared.binary_search_by_key(&likely.token, |shared| shared.token)
            && shared[at].logprob != likely.logprob
        {
            return Err(BadRow(format!(
                "holds two log probabilities of token {}",
                likely.token
            )));
        }
    }
    Ok(())
}

fn merged(mut ids: Vec<TokenId>, more: Vec<TokenId>) -> Vec<TokenId> {
    ids.extend(more);
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests;
