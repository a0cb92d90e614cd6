//! Log probabilities on the wire.

use speculation::bad_value::BadValue;
use speculation::logprobs::TokenLogprobs;

use crate::status::BadField;
use crate::v1;

/// Most alternatives that come with a token.
pub const MAX_TOP: u32 = 20;

/// How much above 0 rounding may take a log probability.
const ROUNDING: f32 = 1e-3;

/// Writes the log probabilities at one position.
pub fn to_wire(logprobs: &TokenLogprobs) -> v1::TokenLogprobs {
    let top = logprobs.top.iter().map(|likely| v1::TopLogprob {
        token_id: likely.token,
        logprob: likely.logprob as f32,
    });
    v1::TokenLogprobs {
        logprob: logprobs.logprob as f32,
        top: top.collect(),
        log_normaliser: logprobs.normaliser as f32,
    }
}

/// Reads how many alternatives are to come with each token; none if no log probabilities are wanted.
///
/// # Errors
/// If they are too many, or come without the token's own.
pub fn wanted(logprobs: bool, top: u32) -> Result<Option<u32>, BadField> {
    let expected = format_args!("at most {MAX_TOP}");
    BadValue::in_range(top <= MAX_TOP, "top_logprobs", top, expected)?;
    if top > 0 && !logprobs {
        let problem = "come with log probabilities only; set logprobs too";
        return Err(BadField::new("top_logprobs", problem));
    }
    Ok(logprobs.then_some(top))
}

/// Checks what a verifier sent for `tokens` tokens of a session that wants `wanted` ([`wanted`]) of a vocabulary of
/// `vocab_size`.
///
/// # Errors
/// If there is not one for each token, or one holds what cannot be.
pub fn check(
    wire: &[v1::TokenLogprobs],
    wanted: Option<u32>,
    tokens: usize,
    vocab_size: u32,
) -> Result<(), BadField> {
    let Some(top) = wanted else {
        return match wire {
            [] => Ok(()),
            _ => Err(BadField::new("logprobs", "nobody asked for them")),
        };
    };
    if wire.len() != tokens {
        let problem = format!("{} for {tokens} tokens", wire.len());
        return Err(BadField::new("logprobs", problem));
    }
    // Of a token whose logit is -inf it is -inf.
    let is_one = |logprob: f32| logprob <= ROUNDING;
    let expected = top.min(vocab_size) as usize;
    let fits = |at: &v1::TokenLogprobs| {
        let known = |top: &v1::TopLogprob| top.token_id < vocab_size && is_one(top.logprob);
        let falls = at.top.is_sorted_by(|a, b| a.logprob >= b.logprob);
        let is_whole = at.top.len() == expected && at.top.iter().all(known);
        is_one(at.logprob) && at.log_normaliser.is_finite() && is_whole && falls
    };
    if wire.iter().all(fits) {
        return Ok(());
    }
    let problem = "a value that is no log probability, or not as many alternatives as requested";
    Err(BadField::new("logprobs", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(logprob: f32, top: &[(u32, f32)]) -> v1::TokenLogprobs {
        let top = top
            .iter()
            .map(|&(token_id, logprob)| v1::TopLogprob { token_id, logprob });
        v1::TokenLogprobs {
            logprob,
            top: top.collect(),
            log_normaliser: 1.5,
        }
    }

    #[test]
    fn alternatives_come_with_log_probabilities_only_and_are_bounded() {
        assert_eq!(wanted(false, 0), Ok(None));
        assert_eq!(wanted(true, 0), Ok(Some(0)));
        assert_eq!(wanted(true, MAX_TOP), Ok(Some(MAX_TOP)));
        for (logprobs, top) in [(true, MAX_TOP + 1), (false, MAX_TOP + 1), (false, 1)] {
            let refused = wanted(logprobs, top).expect_err("refused");
            assert_eq!(refused.field, "top_logprobs");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let whole = [
            at(-0.1, &[(7, -0.1), (2, -3.0)]),
            at(f32::NEG_INFINITY, &[(1, 0.0), (0, f32::NEG_INFINITY)]),
        ];
        assert_eq!(check(&whole, Some(2), 2, 8), Ok(()));
        assert_eq!(check(&[], None, 2, 8), Ok(()));
        assert_eq!(check(&[at(-0.1, &[(0, -1.0)])], Some(20), 1, 1), Ok(()));
        assert!(check(&whole, None, 2, 8).is_err());
        assert!(check(&whole, Some(2), 3, 8).is_err());
        assert!(check(&whole, Some(3), 2, 8).is_err());
        assert!(check(&whole, Some(2), 2, 7).is_err());
        let without_normaliser = v1::TokenLogprobs {
            log_normaliser: f32::NAN,
            ..at(-1.0, &[])
        };
        for crooked in [
            at(f32::NAN, &[(0, -1.0)]),
            at(0.5, &[(0, -1.0)]),
            at(-1.0, &[(0, f32::NAN)]),
            at(-1.0, &[(0, 1.0)]),
            without_normaliser,
        ] {
            let refused = check(std::slice::from_ref(&crooked), Some(1), 1, 8);
            assert!(refused.is_err(), "{crooked:?}");
        }
        let rising = [at(-1.0, &[(0, -2.0), (1, -1.0)])];
        assert!(check(&rising, Some(2), 1, 8).is_err());
    }
}
