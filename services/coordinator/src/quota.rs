//! Limits of each client's token for a minute: its requests, and the tokens of its prompts and outputs.
//!
//! A request takes the tokens of its prompts when it begins, and those of its outputs as they come. Nothing is reserved
//! for outputs: what is under way goes on, also beyond the limit, and the next request waits until that is made up for.

mod bucket;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use net::auth::{RateLimits, TokenHolder};
use wire::status::BadField;

use bucket::{Bucket, Shortage};

/// The use of all clients' tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates(Arc<Mutex<HashMap<u64, Quota>>>);

/// The use of one token, which is counted only if the token has limits. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quota(Option<Arc<OfToken>>);

#[derive(Debug)]
struct OfToken {
    limits: RateLimits,
    requests: Option<Mutex<Bucket>>,
    tokens: Option<Mutex<Bucket>>,
}

/// Why a request is not taken.
#[derive(Debug)]
pub(crate) enum Exceeded {
    /// The request would be taken after this time.
    For(String, Duration),
    /// The request would never be taken.
    Forever(BadField),
}

impl Rates {
    /// Returns the use of the token of `client`.
    pub(crate) fn of(&self, client: Option<&TokenHolder>) -> Quota {
        let Some(client) = client.filter(|client| client.rates != RateLimits::default()) else {
            return Quota::default();
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quota = known.entry(client.token).or_default();
        if quota.0.as_ref().is_none_or(|of| of.limits != client.rates) {
            // The file was changed, or the token is new.
            *quota = Quota::new(client.rates);
        }
        quota.clone()
    }
}

impl Quota {
    fn new(limits: RateLimits) -> Self {
        let bucket = |per_minute| Mutex::new(Bucket::new(per_minute));
        Self(Some(Arc::new(OfToken {
            limits,
            requests: limits.requests.map(bucket),
            tokens: limits.tokens.map(bucket),
        })))
    }

    /// Counts a request, if there is anything left for it.
    pub(crate) fn begin(&self) -> Result<(), Exceeded> {
        self.with_tokens(|tokens| tokens.check(1))
            .unwrap_or(Ok(()))
            .map_err(|shortage| self.too_many_tokens(1, shortage))?;
        let Some(of) = &self.0 else {
            return Ok(());
        };
        let Some((bucket, most)) = of.requests.as_ref().zip(of.limits.requests) else {
            return Ok(());
        };
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(1).map_err(|shortage| {
            let wait = match shortage {
                Shortage::For(wait) => wait,
                Shortage::Forever => Duration::from_secs(60),
            };
            let why = format!(
                "the {most} requests a minute of this token are used up (rpm={most} in auth.client_tokens_file); the \
                 next is taken in {} s",
                wait.as_secs()
            );
            Exceeded::For(why, wait)
        })
    }

    /// Takes the `tokens` of a request's prompts.
    pub(crate) fn take_prompts(&self, tokens: u64) -> Result<(), Exceeded> {
        self.with_tokens(|bucket| bucket.take(tokens))
            .unwrap_or(Ok(()))
            .map_err(|shortage| self.too_many_tokens(tokens, shortage))
    }

    /// Takes `tokens` of an output.
    pub(crate) fn charge_output(&self, tokens: usize) {
        self.with_tokens(|bucket| bucket.charge(tokens as u64));
    }

    /// Returns what `used` makes of the bucket of tokens; none if tokens are not limited.
    fn with_tokens<T>(&self, used: impl FnOnce(&mut Bucket) -> T) -> Option<T> {
        let bucket = self.0.as_ref()?.tokens.as_ref()?;
        Some(used(
            &mut bucket.lock().unwrap_or_else(PoisonError::into_inner),
        ))
    }

    fn too_many_tokens(&self, tokens: u64, shortage: Shortage) -> Exceeded {
        let most = self.0.as_ref().and_then(|of| of.limits.tokens);
        let most = most.map_or(0, u32::from);
        let limit = format!("tpm={most} in auth.client_tokens_file");
        match shortage {
            Shortage::For(wait) => {
                let why = format!(
                    "the {most} tokens a minute of this token, of prompts and outputs, are used up ({limit}); a prompt \
                     of {tokens} tokens is taken in {} s",
                    wait.as_secs()
                );
                Exceeded::For(why, wait)
            }
            Shortage::Forever => Exceeded::Forever(BadField::new(
                "prompt",
                format!(
                    "{tokens} tokens, expected at most the {most} that this token may use in a minute ({limit})"
                ),
            )),
        }
    }
}
