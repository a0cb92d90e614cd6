//! Metrics by tenant: the name of the token that a request shows.

use server::metrics::{Counter, Metrics, names};

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
