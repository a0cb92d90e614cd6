//! Who is let in: a bounded number of requests at a time, of all clients and of each token.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use net::auth::{Exceeded, Quota, TokenHolder, TokenQuotas};
use net::log_throttle::LogThrottle;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use wire::status::{BadField, overloaded};

use super::RETRY_AFTER;
use super::memory::MemoryBudget;
use crate::driver::RequestPlace;

/// How often it is logged at most that requests are refused.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Into how many shares the memory of whole answers is divided; an answer takes one, if its request does not say how
/// long it may be.
const ANSWER_SHARES: u64 = 8;

/// Output tokens that a request gets all the same if it does not say, where the context leaves as many.
const LEAST_UNASKED: u64 = 256;

/// The settings that bound the requests of one token, as errors name them.
const SETTINGS_OF_TOKENS: &str =
    "requests=N in auth.client_tokens_file, or coordinator.max_requests_per_client";

/// Refuses a request for more outputs than can ever run at a time.
fn at_most(count: u32, most: usize, setting: &str) -> Result<(), BadField> {
    if count as usize <= most {
        return Ok(());
    }
    let problem = format!("{count} outputs in all, expected at most {most} ({setting})");
    Err(BadField::new("n", problem))
}

/// Lets at most so many requests run at a time.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    max_requests: usize,
    /// Most requests of a token whose line names no number, if they are bounded.
    max_per_token: Option<NonZeroU32>,
    of_tokens: Arc<Mutex<HashMap<u64, TokenPlaces>>>,
    distributions: MemoryBudget,
    /// For the tokens of whole answers.
    answers: MemoryBudget,
    quotas: TokenQuotas,
    refused: Arc<LogThrottle>,
}

/// The places of one token.
#[derive(Debug)]
struct TokenPlaces {
    max_requests: NonZeroU32,
    permits: Arc<Semaphore>,
}

impl Admission {
    pub(crate) fn new(
        max_requests: usize,
        max_per_token: Option<NonZeroU32>,
        max_distribution_bytes: u64,
        max_answer_bytes: u64,
    ) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max_requests)),
            max_requests,
            max_per_token,
            of_tokens: Arc::default(),
            distributions: MemoryBudget::new(max_distribution_bytes),
            answers: MemoryBudget::new(max_answer_bytes),
            quotas: TokenQuotas::default(),
            refused: Arc::new(LogThrottle::every(LOG_INTERVAL)),
        }
    }

    /// Returns how many requests are under way.
    pub(crate) fn running(&self) -> usize {
        self.max_requests - self.permits.available_permits()
    }

    /// Returns how many may be under way at a time.
    pub(crate) fn max_requests(&self) -> usize {
        self.max_requests
    }

    /// Returns places for all `count` outputs of one request of `client`, each of which runs as a request of its own, or
    /// none; and counts the request among those that the client's token may make in a minute. There must be a place for
    /// each among all requests, and among those of the token.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait; `INVALID_ARGUMENT` naming `n` if there can never be that many.
    pub(crate) fn admit(
        &self,
        client: Option<&TokenHolder>,
        count: u32,
    ) -> Result<Vec<RequestPlace>, Status> {
        at_most(count, self.max_requests, "coordinator.max_requests")?;
        let of_token = client.map(|client| self.admit_token(client, count));
        let mut of_token = of_token.transpose()?.flatten();
        let all = Arc::clone(&self.permits).try_acquire_many_owned(count);
        let mut all = all.map_err(|_| {
            let what = format!(
                "{} requests are under way, no more are taken",
                self.max_requests
            );
            self.refuse(what)
        })?;
        let quota = self.quotas.of(client);
        quota.begin().map_err(|exceeded| self.exceeded(exceeded))?;
        let places = (0..count).map(|_| {
            let of_token = of_token.as_mut().and_then(|permits| permits.split(1));
            RequestPlace {
                permits: of_token.into_iter().chain(all.split(1)).collect(),
                quota: quota.clone(),
            }
        });
        Ok(places.collect())
    }

    /// Takes the `tokens` of a request's prompts from what its client's token may use in a minute.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with the time after which there are as many; `INVALID_ARGUMENT` if there never are.
    pub(super) fn admit_prompts(&self, quota: &Quota, tokens: u64) -> Result<(), Status> {
        let taken = quota.take_prompts(tokens);
        taken.map_err(|exceeded| self.exceeded(exceeded))
    }

    fn exceeded(&self, exceeded: Exceeded) -> Status {
        match exceeded {
            Exceeded::For(why, wait) => self.refuse_for(why, wait),
            Exceeded::Forever(why) => BadField::new("prompt", why).into(),
        }
    }

    /// Returns the status of a request that must wait, for `why`; logs that there are such requests.
    fn refuse(&self, why: String) -> Status {
        self.refuse_for(why, RETRY_AFTER)
    }

    fn refuse_for(&self, why: String, wait: Duration) -> Status {
        if let Some(others) = self.refused.passes() {
            tracing::warn!(
                why,
                others,
                "request refused; `others` were refused since the last such line"
            );
        }
        overloaded(why, wait)
    }

    /// Places among the requests of the client's token, if these are bounded.
    fn admit_token(
        &self,
        client: &TokenHolder,
        count: u32,
    ) -> Result<Option<OwnedSemaphorePermit>, Status> {
        let Some(max_requests) = client.max_requests.or(self.max_per_token) else {
            return Ok(None);
        };
        at_most(count, max_requests.get() as usize, SETTINGS_OF_TOKENS)?;
        let mut of_tokens = self.of_tokens.lock();
        let new = || TokenPlaces {
            max_requests,
            permits: Arc::new(Semaphore::new(max_requests.get() as usize)),
        };
        let of_token = of_tokens.entry(client.token).or_insert_with(new);
        if of_token.max_requests != max_requests {
            // The file was changed. Requests under way still hold permits of the old semaphore.
            *of_token = new();
        }
        let place = Arc::clone(&of_token.permits).try_acquire_many_owned(count);
        place.map(Some).map_err(|_| {
            let what = format!(
                "{max_requests} requests of this token are under way, no more are taken ({SETTINGS_OF_TOKENS})"
            );
            self.refuse(what)
        })
    }

    /// Reserves memory for the distributions of one request, held for as long as it runs.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait; or `INVALID_ARGUMENT` if they never fit.
    pub(crate) fn admit_bytes(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        let never = |kib, most| {
            let problem = format!(
                "the distributions of a round take {kib} KiB, and all that may be held is {most} KiB \
                 (coordinator.max_distribution_bytes); ask for fewer draft tokens"
            );
            BadField::new("settings.draft_len", problem)
        };
        self.distributions.reserve(bytes, never, |kib| {
            let what = format!("no room for {kib} KiB of distributions of another request");
            self.refuse(what)
        })
    }

    /// Returns how many tokens each of `outputs` outputs has at most where a request does not say: as many as one share of
    /// the memory of whole answers holds at `per_token` bytes each, so that it is not refused for a number that nobody
    /// asked for.
    pub(crate) fn unasked_tokens(&self, per_token: u64, outputs: usize) -> u32 {
        let share = self.answers.bytes() / ANSWER_SHARES;
        let of_each = share / (outputs.max(1) as u64);
        let tokens = of_each.checked_div(per_token).unwrap_or(u64::MAX);
        u32::try_from(tokens.max(LEAST_UNASKED)).unwrap_or(u32::MAX)
    }

    /// Reserves memory for an answer that keeps `per_token` bytes of each of `tokens` tokens until it is sent.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait; or `INVALID_ARGUMENT` if it never fits.
    pub(crate) fn admit_answer(
        &self,
        tokens: u64,
        per_token: u64,
    ) -> Result<OwnedSemaphorePermit, Status> {
        let never = |kib, most| {
            let problem = format!(
                "a whole answer of {tokens} tokens in all, with what is told of each, takes {kib} KiB, and all that may \
                 be held is {most} KiB (coordinator.max_answer_bytes); stream it, or ask for fewer tokens or alternatives"
            );
            BadField::new("logprobs", problem)
        };
        let bytes = tokens.saturating_mul(per_token);
        self.answers.reserve(bytes, never, |kib| {
            self.refuse(format!("no room for {kib} KiB of another whole answer"))
        })
    }
}

#[cfg(test)]
mod tests;
