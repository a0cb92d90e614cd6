//! Requests to the three services, with and without drafts, in turn.

use std::time::Instant;

use anyhow::ensure;
use tokio_util::sync::CancellationToken;

use crate::measure::{Measured, RequestSetting, measure};
use crate::pairs::Pair;
use crate::request::RequestForm;
use crate::spec::MeasuredMethod;
use client::Client;
use outrider::cluster::Cluster;
use outrider::config::Config;
use outrider::connect;
use outrider::measure::BASELINE;
use outrider::progress;

/// How long drafts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialDraftLen {
    /// Always so many tokens.
    Fixed(u32),
    /// As many as pay, by what the session measures.
    Auto,
}

impl std::fmt::Display for TrialDraftLen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(tokens) => write!(f, "{tokens}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// The services of one pair, and what is asked of them.
pub(super) struct Trial {
    cluster: Cluster,
    client: Client,
    temperature: f32,
    max_tokens: u32,
}

/// The same requests with the target alone and with drafts.
#[derive(Clone, Debug, Default)]
pub(super) struct TrialComparison {
    pub(super) baseline_seconds: f64,
    pub(super) method_seconds: f64,
    pub(super) method: Measured,
}

impl TrialComparison {
    /// How many times faster the drafts make it, from a request's start to its end.
    pub(super) fn speedup(&self) -> f64 {
        self.baseline_seconds / self.method_seconds.max(f64::MIN_POSITIVE)
    }
}

impl Trial {
    /// Starts the services and makes a first request of each kind, which counts not.
    ///
    /// # Errors
    /// If a service does not start, or a request fails.
    pub(super) async fn start(
        pair: Pair,
        config: Config,
        temperature: f32,
        max_tokens: u32,
        prompt: &str,
    ) -> anyhow::Result<Self> {
        let config = config.on_loopback();
        let stop = CancellationToken::new();
        let starting = Cluster::start_with(config, pair.draft, pair.target, stop);
        let cluster = Box::pin(starting).await?;
        let client = connect::within(&cluster.coordinator_url)?;
        let mut trial = Self {
            cluster,
            client,
            temperature,
            max_tokens,
        };
        trial.request(None, prompt, 0).await?;
        trial
            .request(Some(TrialDraftLen::Fixed(4)), prompt, 0)
            .await?;
        Ok(trial)
    }

    /// One request; without a draft length by the target alone. Returns its text, what it took in
    /// seconds and what the services say of it.
    async fn request(
        &mut self,
        draft_len: Option<TrialDraftLen>,
        prompt: &str,
        seed: u64,
    ) -> anyhow::Result<(String, f64, Measured)> {
        let (method, tokens) = match draft_len {
            None => (BASELINE, None),
            Some(TrialDraftLen::Fixed(tokens)) => ("coupled", Some(tokens)),
            Some(TrialDraftLen::Auto) => ("coupled", None),
        };
        let setting = RequestSetting {
            method: MeasuredMethod::parse(method)?,
            form: RequestForm::default(),
            temperature: self.temperature,
            draft_len: tokens,
            max_tokens: self.max_tokens,
        };
        let started = Instant::now();
        let answer = measure(&self.client, &setting, prompt, seed).await?;
        let seconds = started.elapsed().as_secs_f64();
        Ok((answer.text, seconds, answer.measured))
    }

    /// Makes the requests of all `prompts` with the target alone and with every one of `draft_lens`, in
    /// turn, so that all see the machine in the same mood.
    ///
    /// # Errors
    /// If a request fails, or drafts change what comes out.
    pub(super) async fn compare(
        &mut self,
        prompts: &[String],
        draft_lens: &[TrialDraftLen],
    ) -> anyhow::Result<Vec<TrialComparison>> {
        let mut compared = vec![TrialComparison::default(); draft_lens.len()];
        for (seed, prompt) in prompts.iter().enumerate() {
            progress::show(&format!(
                "T={}: prompt {} of {}",
                self.temperature,
                seed + 1,
                prompts.len()
            ))?;
            let seed = seed as u64;
            let (expected, baseline, _) = self.request(None, prompt, seed).await?;
            for (draft_len, compared) in draft_lens.iter().zip(&mut compared) {
                let (text, seconds, measured) =
                    self.request(Some(*draft_len), prompt, seed).await?;
                ensure!(
                    text == expected,
                    "drafts of length {draft_len} changed the output for {prompt:?}: {text:?} is not \
                     {expected:?}"
                );
                compared.baseline_seconds += baseline;
                compared.method_seconds += seconds;
                compared.method.add(&measured);
            }
        }
        Ok(compared)
    }

    /// Stops the services.
    ///
    /// # Errors
    /// If one of them failed.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.cluster.stop().await
    }
}
