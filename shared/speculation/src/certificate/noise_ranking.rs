//! The tokens with the largest noise at a position.

use crate::TokenId;
use crate::noise::Noise;
use crate::philox::LANES;
use crate::real::Real;
use crate::simd::kernel;

/// From here on noise grows with the uniform that it is made of, in the computed numbers too.
///
/// Uniforms are odd multiples of 2^-53, so two of them are at least 2^-52 apart, and so are their E = -ln u. From
/// u = 15/16 on E is below 1/15, and a logarithm that errs by less than one unit in the last place keeps 3/4 of that
/// distance. Divided by E it is the distance of the two ln E, more than 11 * 2^-52, while both err by less than
/// 2^-51 together with any E from 1/64 on; below, the distance grows as 1/E and the unit of ln E only as its size.
const ORDERED_FROM: f64 = 0.9375;

/// Uniforms of one position, one for each token, from which Gumbel noise `-ln(-ln u)` is made.
pub trait TokenUniforms {
    /// The uniform of `token`, in (0, 1).
    fn uniform(&self, token: TokenId) -> f64;

    /// Those of the tokens from `first` on; of tokens beyond the vocabulary any number.
    fn uniforms(&self, first: TokenId) -> [f64; LANES];
}

/// The keyed uniforms of one output position: those of [`crate::coupled::choice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedUniforms {
    /// The noise.
    pub noise: Noise,
    /// Output position.
    pub position: u32,
}

impl TokenUniforms for KeyedUniforms {
    #[inline]
    fn uniform(&self, token: TokenId) -> f64 {
        self.noise.coupled_of(self.position, token)
    }

    #[inline(always)]
    fn uniforms(&self, first: TokenId) -> [f64; LANES] {
        self.noise.coupled(self.position, first)
    }
}

/// The noise of one position, and which tokens have the most of it.
///
/// It depends on nothing but seed and position: it is made once, before the engine is asked, in one pass over the
/// vocabulary that keeps only the leading tokens, and serves every row asked for at the position.
#[derive(Clone, Debug)]
pub struct NoiseRanking<U> {
    uniforms: U,
    vocab_size: usize,
    /// Uniform and token, the largest first, the lowest ids among equals first.
    leading: Vec<(f64, TokenId)>,
}

impl<U: TokenUniforms> NoiseRanking<U> {
    /// Finds the `count` tokens with the largest noise in a vocabulary of `vocab_size`. A count above that of the
    /// ids asked for spares a second pass where the row holds some of the tokens anyway.
    pub fn new(uniforms: U, vocab_size: usize, count: usize) -> Self {
        let count = count.min(vocab_size);
        let mut leading = Vec::new();
        // Five standard deviations more than wanted, so that one pass mostly finds enough.
        let mut expected = count as f64 + 5.0 * (count as f64).sqrt() + 8.0;
        loop {
            leading.clear();
            let least = (1.0 - expected / vocab_size as f64).max(0.0);
            collect(&uniforms, vocab_size, least, &mut leading);
            if leading.len() >= count {
                break;
            }
            expected *= 2.0;
        }
        leading.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        leading.truncate(count);
        Self {
            uniforms,
            vocab_size,
            leading,
        }
    }

    /// The tokens with the largest noise, the largest first: as many as were found.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = TokenId> + '_ {
        self.leading.iter().map(|&(_, token)| token)
    }

    /// The noise of a token.
    pub fn noise(&self, token: TokenId) -> f64 {
        gumbel(self.uniforms.uniform(token))
    }

    /// The largest noise among the tokens that `is_known` leaves out; none if it leaves out none.
    pub fn largest_outside(&self, is_known: impl Fn(TokenId) -> bool) -> Option<f64> {
        let first = self.leading.iter().find(|&&(_, token)| !is_known(token));
        let found = first.map(|&(uniform, _)| uniform);
        let largest = found.or_else(|| self.outside(&is_known).reduce(f64::max))?;
        if largest >= ORDERED_FROM {
            return Some(gumbel(largest));
        }
        // Only where few are left out are all uniforms so small.
        self.outside(is_known).map(gumbel).reduce(f64::max)
    }

    /// The uniforms of all tokens that `is_known` leaves out.
    fn outside(&self, is_known: impl Fn(TokenId) -> bool) -> impl Iterator<Item = f64> {
        let tokens = 0..self.vocab_size as TokenId;
        let unknown = tokens.filter(move |&token| !is_known(token));
        unknown.map(|token| self.uniforms.uniform(token))
    }
}

/// Gumbel noise of a uniform.
fn gumbel(uniform: f64) -> f64 {
    -(-uniform.ln_portable()).ln_portable()
}

kernel! {
    /// Collects the tokens whose uniform is at least `least`, and that uniform.
    fn collect<'a, U: TokenUniforms>(
        uniforms: &'a U,
        vocab_size: usize,
        least: f64,
        found: &'a mut Vec<(f64, TokenId)>,
    ) -> () {
        #[allow(
            clippy::needless_bitwise_bool,
            reason = "a branch a lane would keep the loop from being vectorised"
        )]
        let is_any = |block: &[f64; LANES]| {
            block.iter().fold(false, |any, &uniform| any | (uniform >= least))
        };
        for first in (0..vocab_size).step_by(LANES) {
            let block = uniforms.uniforms(first as TokenId);
            if !is_any(&block) {
                continue;
            }
            for (token, uniform) in (first..vocab_size).zip(block) {
                if uniform >= least {
                    found.push((uniform, token as TokenId));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(position: u32) -> KeyedUniforms {
        KeyedUniforms {
            noise: Noise::new(0x5eed, 0),
            position,
        }
    }

    #[test]
    fn the_leading_tokens_are_those_of_a_sorted_row() {
        for vocab_size in [1, 5, 16, 17, 100, 4096] {
            let uniforms = keyed(vocab_size as u32);
            let noise = |token: &TokenId| gumbel(uniforms.uniform(*token));
            let mut all: Vec<TokenId> = (0..vocab_size as TokenId).collect();
            all.sort_by(|a, b| noise(b).total_cmp(&noise(a)));
            for count in [0, 1, 7, 64, 300, 5000] {
                let ranking = NoiseRanking::new(uniforms, vocab_size, count);
                let found: Vec<TokenId> = ranking.tokens().collect();
                assert_eq!(
                    found,
                    all[..count.min(vocab_size)],
                    "{count} of {vocab_size}"
                );
            }
        }
    }

    #[test]
    fn the_largest_noise_outside_of_a_set_is_that_of_a_search() {
        for position in 0..200 {
            let vocab_size = 1 + position as usize * 3;
            let ranking = NoiseRanking::new(keyed(position), vocab_size, 1 + vocab_size / 7);
            // Sets from nothing to nearly everything, and the leading tokens themselves.
            for every in 1..6 {
                let leading: Vec<TokenId> = ranking.tokens().collect();
                let is_known = |token: TokenId| {
                    !token.is_multiple_of(every) || every % 2 == 0 && leading.contains(&token)
                };
                let outside = (0..vocab_size as TokenId).filter(|&token| !is_known(token));
                let expected = outside.map(|token| ranking.noise(token)).reduce(f64::max);
                assert_eq!(ranking.largest_outside(is_known), expected);
            }
            assert_eq!(ranking.largest_outside(|_| true), None);
        }
    }

    /// Every neighbour from the largest uniform down, and some of every size.
    #[test]
    fn noise_grows_with_its_uniform_from_there_on() {
        let step = 0.5_f64.powi(52);
        let largest = 1.0 - step / 2.0;
        let mut starts: Vec<f64> = (0..48).map(|bits| 2.0_f64.powi(bits)).collect();
        starts.extend((0..400).map(|at| f64::from(at) * 7e11 + 0.0));
        for start in starts {
            for at in 0..500 {
                let uniform = largest - (start.floor() + f64::from(at)) * step;
                assert!(uniform < ORDERED_FROM || gumbel(uniform) > gumbel(uniform - step));
            }
        }
    }
}
