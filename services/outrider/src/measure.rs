//! One request, measured.

use std::fmt::Display;

use anyhow::{anyhow, ensure};
use client::{Client, Policy};
use wire::v1::generate_request::Prompt;
use wire::v1::{Finished, GenerateRequest, SamplingParams};

use crate::args::with_flag;

/// The method every other one is compared with.
pub const BASELINE: &str = "target-only";

/// What one or several requests took.
#[derive(Clone, Debug, Default)]
pub struct RequestTotals {
    /// Output tokens.
    pub tokens: f64,
    /// From the request to its end, prefill included.
    pub total_ms: f64,
    /// From the request to its first token, added up.
    pub first_token_ms: f64,
    /// Draft tokens accepted.
    pub accepted: f64,
    /// Draft tokens verified.
    pub drafted: f64,
    /// Forwards of the target model.
    pub target_forwards: f64,
}

impl RequestTotals {
    /// Returns what the request took whose answer ended so.
    pub fn of(finished: &Finished) -> Self {
        let timing = finished.timing.unwrap_or_default();
        let speculation = finished.speculation.clone().unwrap_or_default();
        Self {
            tokens: f64::from(finished.usage.unwrap_or_default().completion_tokens),
            total_ms: timing.total_ms,
            first_token_ms: timing.time_to_first_token_ms,
            accepted: f64::from(speculation.num_accepted_draft_tokens),
            drafted: f64::from(speculation.num_draft_tokens),
            target_forwards: f64::from(speculation.target_forwards),
        }
    }

    /// Adds what another request took.
    pub fn add(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.total_ms += other.total_ms;
        self.first_token_ms += other.first_token_ms;
        self.accepted += other.accepted;
        self.drafted += other.drafted;
        self.target_forwards += other.target_forwards;
    }

    /// Returns output tokens by all time.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens / self.total_ms.max(1e-6) * 1e3
    }

    /// Returns forwards of the target model over output tokens.
    pub fn target_calls_per_token(&self) -> f64 {
        self.target_forwards / self.tokens.max(1.0)
    }

    /// Returns accepted draft tokens over verified ones; none if none was verified.
    pub fn acceptance_rate(&self) -> Option<f64> {
        (self.drafted > 0.0).then(|| self.accepted / self.drafted)
    }
}

/// Returns the request for an answer of so many tokens to `prompt`, by the default method.
pub fn request(prompt: &str, max_tokens: u32, temperature: f32, seed: u64) -> GenerateRequest {
    GenerateRequest {
        prompt: Some(Prompt::Text(prompt.to_owned())),
        max_tokens: Some(max_tokens),
        sampling: Some(SamplingParams {
            temperature: Some(temperature),
            ..Default::default()
        }),
        seed: Some(seed),
        ..Default::default()
    }
}

/// Runs one request, by a method called so, and has its rounds reported.
///
/// # Errors
/// If it is refused or fails, or goes on without its drafter: a benchmark of failures says nothing.
pub async fn measure(
    client: &Client,
    method: &impl Display,
    request: GenerateRequest,
) -> anyhow::Result<client::CollectedAnswer> {
    let request = GenerateRequest {
        report_rounds: true,
        ..request
    };
    // Waits and retries would count as the method's own time.
    let client = client.clone().with_policy(Policy::NONE);
    let answer = async { client.generate(request).await?.collect().await };
    let answer = answer.await.map_err(|error| {
        let field = error.field();
        anyhow!(
            "{method}: {}",
            with_flag(&error.to_string(), field.as_deref())
        )
    })?;
    let mut speculation = answer.finished.speculation.iter();
    ensure!(
        speculation.all(|it| it.fallbacks.is_empty()),
        "{method}: the drafter was lost"
    );
    Ok(answer)
}
