//! When the output of a request came, and what its tenant used.

use std::time::Instant;

use ops::metrics::{Counter, Metrics, names};

/// When the output of a request came, and how many tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    first: Instant,
    last: Instant,
    /// Tokens after those that came first, together.
    later: u32,
}

impl Output {
    /// The first tokens come.
    pub(super) fn begins(at: Instant) -> Self {
        Self {
            first: at,
            last: at,
            later: 0,
        }
    }

    /// So many more tokens come.
    pub(super) fn goes_on(&mut self, at: Instant, tokens: u32) {
        self.last = at;
        self.later += tokens;
    }

    /// When the first tokens came.
    pub(super) fn first(&self) -> Instant {
        self.first
    }

    /// Seconds that each token after the first ones took. None if there is none.
    pub(super) fn per_token(&self) -> Option<f64> {
        let took = (self.last - self.first).as_secs_f64();
        (self.later > 0).then(|| took / f64::from(self.later))
    }
}

/// The tenant of requests that show no token, or one without a name.
const UNNAMED: &str = "unnamed";

/// The metrics of one tenant. Names come from the file of tokens, so that there are no more than it has.
#[derive(Debug)]
pub(super) struct TenantMetrics {
    metrics: Metrics,
    tenant: String,
    pub(super) prompt_tokens: Counter,
    pub(super) output_tokens: Counter,
}

impl TenantMetrics {
    pub(super) fn new(metrics: &Metrics, tenant: Option<&str>) -> Self {
        let tenant = tenant.unwrap_or(UNNAMED).to_owned();
        let tokens = |kind| metrics.counter(&names::TENANT_TOKENS, &[&tenant, kind]);
        Self {
            prompt_tokens: tokens("prompt"),
            output_tokens: tokens("output"),
            metrics: metrics.clone(),
            tenant,
        }
    }

    /// Counts a request that came to `outcome`.
    pub(super) fn request(&self, outcome: &str) {
        let labels = [self.tenant.as_str(), outcome];
        self.metrics.counter(&names::TENANT_REQUESTS, &labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// However many tokens come first, the time since then is that of the others.
    #[test]
    fn the_tokens_that_come_first_have_no_time_of_their_own() {
        let first = Instant::now();
        let at = |ms| first + Duration::from_millis(ms);
        let mut output = Output::begins(first);
        assert_eq!(output.per_token(), None);
        output.goes_on(at(30), 5);
        output.goes_on(at(80), 3);
        assert_eq!(output.per_token(), Some(0.01));
        assert_eq!(output.first(), first);
    }
}
