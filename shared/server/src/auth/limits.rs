//! Limits that stand after a token in its file.

use std::num::NonZeroU32;

/// How much a token may use in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Most requests that begin in a minute.
    pub requests: Option<NonZeroU32>,
    /// Most tokens in a minute, of prompts and outputs together.
    pub tokens: Option<NonZeroU32>,
}

/// The limits of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Most requests under way.
    pub(super) max_requests: Option<NonZeroU32>,
    pub(super) rates: Rates,
}

/// What a line looks like.
pub(super) const FORM: &str = "[NAME] TOKEN [requests=N] [rpm=N] [tpm=N]";

impl Limits {
    /// Takes the limits off the end of a line's `words`.
    ///
    /// # Errors
    /// Says what is wrong with one of them, never what stands before it.
    pub(super) fn take(words: &mut Vec<&str>) -> Result<Self, String> {
        let mut limits = Self::default();
        while let Some((name, value)) = words.last().and_then(|word| word.split_once('=')) {
            let limit = match name {
                "requests" => &mut limits.max_requests,
                "rpm" => &mut limits.rates.requests,
                "tpm" => &mut limits.rates.tokens,
                _ => break,
            };
            let number = value.parse().map_err(|_| {
                format!(
                    "{name}={value} is no limit, expected a whole number from 1 to {}",
                    u32::MAX
                )
            })?;
            if limit.replace(number).is_some() {
                return Err(format!("{name}= stands there twice"));
            }
            words.pop();
        }
        Ok(limits)
    }
}
