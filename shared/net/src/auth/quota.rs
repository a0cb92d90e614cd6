//! Limits of each client's token for a minute: its requests, and the tokens of its prompts and outputs.
//!
//! A request takes the tokens of its prompts when it begins, and those of its outputs as they come. Nothing is reserved
//! for outputs: what is under way goes on, also beyond the limit, and the next request waits until that is made up for.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::guard::{RateLimits, TokenHolder};

/// The use of all clients' tokens.
#[derive(Clone, Debug, Default)]
pub struct TokenQuotas(Arc<Mutex<HashMap<u64, Quota>>>);

/// The use of one token, which is counted only if the token has limits; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Quota(Option<Arc<TokenUse>>);

#[derive(Debug)]
struct TokenUse {
    limits: RateLimits,
    requests: Option<Mutex<Bucket>>,
    tokens: Option<Mutex<Bucket>>,
}

/// Why a request is not taken.
#[derive(Debug)]
pub enum Exceeded {
    /// The request would be taken after this time: why it is not now.
    For(String, Duration),
    /// The request would never be taken: what is wrong with its prompt.
    Forever(String),
}

impl TokenQuotas {
    /// Returns the use of the token of `client`.
    pub fn of(&self, client: Option<&TokenHolder>) -> Quota {
        let Some(client) = client.filter(|client| client.rates != RateLimits::default()) else {
            return Quota::default();
        };
        let mut known = self.0.lock();
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
        Self(Some(Arc::new(TokenUse {
            limits,
            requests: limits.requests.map(bucket),
            tokens: limits.tokens.map(bucket),
        })))
    }

    /// Counts a request, if there is anything left for it.
    ///
    /// # Errors
    /// If there is not.
    pub fn begin(&self) -> Result<(), Exceeded> {
        self.use_tokens(1, Bucket::check)?;
        let Some(requests) = self.0.as_ref().and_then(|of| of.requests.as_ref()) else {
            return Ok(());
        };
        let mut requests = requests.lock();
        let taken = requests.take(1);
        taken.map_err(|shortage| {
            let wait = match shortage {
                Shortage::For(wait) => wait,
                Shortage::Forever => Duration::from_secs(60),
            };
            let (most, seconds) = (requests.per_minute, wait.as_secs());
            let why = format!(
                "the {most} requests a minute of this token are used up (rpm={most} in auth.client_tokens_file); the \
                 next is taken in {seconds} s"
            );
            Exceeded::For(why, wait)
        })
    }

    /// Takes the `tokens` of a request's prompts.
    ///
    /// # Errors
    /// If there are not as many.
    pub fn take_prompts(&self, tokens: u64) -> Result<(), Exceeded> {
        self.use_tokens(tokens, Bucket::take)
    }

    /// Takes `tokens` of an output.
    pub fn charge_output(&self, tokens: usize) {
        if let Some(bucket) = self.tokens() {
            bucket.lock().charge(tokens as u64);
        }
    }

    /// Returns the bucket of tokens, if they are limited.
    fn tokens(&self) -> Option<&Mutex<Bucket>> {
        self.0.as_ref()?.tokens.as_ref()
    }

    /// Has `used` check or take so many `tokens`, if they are limited.
    fn use_tokens(
        &self,
        tokens: u64,
        used: fn(&mut Bucket, u64) -> Result<(), Shortage>,
    ) -> Result<(), Exceeded> {
        let Some(bucket) = self.tokens() else {
            return Ok(());
        };
        let mut bucket = bucket.lock();
        let result = used(&mut bucket, tokens);
        result.map_err(|shortage| too_many_tokens(bucket.per_minute, tokens, shortage))
    }
}

/// Returns the refusal of a prompt of so many `tokens`, of which `most` may be used in a minute.
fn too_many_tokens(most: NonZeroU32, tokens: u64, shortage: Shortage) -> Exceeded {
    let limit = format!("tpm={most} in auth.client_tokens_file");
    match shortage {
        Shortage::For(wait) => {
            let why = format!(
                "the {most} tokens a minute of this token, of prompts and outputs, are used up ({limit}); a prompt of \
                 {tokens} tokens is taken in {} s",
                wait.as_secs()
            );
            Exceeded::For(why, wait)
        }
        Shortage::Forever => Exceeded::Forever(format!(
            "{tokens} tokens, expected at most the {most} that this token may use in a minute ({limit})"
        )),
    }
}

/// A token bucket: `per_minute` units come in a minute, of which as many as a minute's may be used at once.
#[derive(Debug)]
struct Bucket {
    per_minute: NonZeroU32,
    /// Units that were left at `counted`; below zero if more were used than there were.
    left: f64,
    counted: Instant,
}

/// Why units cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shortage {
    /// The units will be there after this time, if nobody else takes them.
    For(Duration),
    /// The bucket never holds as many.
    Forever,
}

impl Bucket {
    /// Returns a full bucket.
    fn new(per_minute: NonZeroU32) -> Self {
        Self {
            per_minute,
            left: per_minute.get().into(),
            counted: Instant::now(),
        }
    }

    /// Takes `units`, all of them or none.
    fn take(&mut self, units: u64) -> Result<(), Shortage> {
        self.check(units)?;
        self.left -= units as f64;
        Ok(())
    }

    /// Returns whether `units` are left, without taking them.
    fn check(&mut self, units: u64) -> Result<(), Shortage> {
        if units > u64::from(self.per_minute.get()) {
            return Err(Shortage::Forever);
        }
        self.refill();
        let lacking = units as f64 - self.left;
        if lacking <= 0.0 {
            return Ok(());
        }
        let seconds = (lacking / self.per_second()).ceil().max(1.0);
        Err(Shortage::For(Duration::from_secs(seconds as u64)))
    }

    /// Takes `units` that were used already, whether there are as many or not.
    fn charge(&mut self, units: u64) {
        self.refill();
        self.left -= units as f64;
    }

    fn refill(&mut self) {
        let now = Instant::now();
        let came = (now - self.counted).as_secs_f64() * self.per_second();
        self.left = (self.left + came).min(self.per_minute.get().into());
        self.counted = now;
    }

    fn per_second(&self) -> f64 {
        f64::from(self.per_minute.get()) / 60.0
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn bucket(per_minute: u32) -> Bucket {
        Bucket::new(NonZeroU32::new(per_minute).expect("some"))
    }

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_used_comes_back_with_time() {
        let mut bucket = bucket(60);
        assert_eq!(bucket.take(60), Ok(()));
        assert_eq!(bucket.take(1), Err(Shortage::For(seconds(1))));
        assert_eq!(bucket.take(10), Err(Shortage::For(seconds(10))));
        advance(seconds(9)).await;
        assert_eq!(bucket.take(10), Err(Shortage::For(seconds(1))));
        advance(seconds(1)).await;
        assert_eq!(bucket.take(10), Ok(()));
        assert_eq!(bucket.check(1), Err(Shortage::For(seconds(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_a_minute_is_saved_up() {
        let mut bucket = bucket(6);
        advance(seconds(3_600)).await;
        assert_eq!(bucket.take(6), Ok(()));
        assert_eq!(bucket.take(1), Err(Shortage::For(seconds(10))));
        assert_eq!(bucket.take(7), Err(Shortage::Forever));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_used_already_is_waited_for() {
        let mut bucket = bucket(60);
        bucket.charge(90);
        assert_eq!(bucket.check(1), Err(Shortage::For(seconds(31))));
        advance(seconds(31)).await;
        assert_eq!(bucket.take(1), Ok(()));
    }
}
