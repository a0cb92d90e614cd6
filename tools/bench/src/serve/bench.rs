//! A server that is ready to be measured: its model is known, the prompts are there, and it has answered.

use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::args::{AskedArgs, ServeArgs};
use super::arrivals::Rate;
use super::drafts::DraftCounts;
use super::endpoint::Endpoint;
use super::form::RequestForm;
use super::load_point::{self, PlannedRequest};
use super::points::Concurrency;
use super::prompts::PromptSource;
use super::rows::MeasuredPoint;
use super::synthetic::{SyntheticPrompts, words_of};

/// Words of the shorter prompt by which tokens of words are counted.
const FEW_WORDS: usize = 8;

/// The server, and what it is asked.
#[derive(Debug)]
pub(super) struct ServeBench {
    pub(super) model: String,
    pub(super) form: RequestForm,
    pub(super) prompts: PromptSource,
    endpoint: Arc<Endpoint>,
    metrics: Option<Endpoint>,
}

impl ServeBench {
    /// Finds out what is needed, and sends the requests that do not count.
    ///
    /// # Errors
    /// If the server does not answer one of them, or a flag's value cannot be used.
    pub(super) async fn prepare(args: &ServeArgs) -> anyhow::Result<Self> {
        let (endpoint, metrics) = args.server.endpoints()?;
        let model = match &args.server.model {
            Some(model) => model.clone(),
            None => first_model(&endpoint).await?,
        };
        let form = args.asked.form(&model, args.server.chat)?;
        let prompts = prompts(&args.asked, &endpoint, &form).await?;
        let bench = Self {
            model,
            form,
            prompts,
            endpoint: Arc::new(endpoint),
            metrics,
        };
        for prompt in bench.prompts.of_point(0, args.load.warmup) {
            let body = bench.form.body(&prompt.text);
            let answer = bench.endpoint.stream(bench.form.path(), body).await;
            answer.context("the first request, which is not to count, failed")?;
        }
        // What cannot be read is told before anything is measured.
        bench.counters().await?;
        Ok(bench)
    }

    /// Measures the load point `index`, counted from 0.
    ///
    /// # Errors
    /// If the server's metrics cannot be read; what is wrong with requests is part of what is measured.
    pub(super) async fn point(
        &self,
        args: &ServeArgs,
        index: usize,
        (rate, at_once): (Rate, Concurrency),
        stop: &CancellationToken,
    ) -> anyhow::Result<MeasuredPoint> {
        let asked = &args.asked;
        let prompts = self.prompts.of_point(1 + index as u64, asked.requests);
        let due = rate.schedule(args.load.burstiness, asked.requests, asked.seed);
        let planned = prompts
            .into_iter()
            .zip(due)
            .map(|(prompt, due)| PlannedRequest {
                body: self.form.body(&prompt.text),
                kind: prompt.kind,
                due,
            });
        let before = self.counters().await?;
        let path = self.form.path();
        let load = load_point::send(&self.endpoint, path, planned.collect(), at_once.0, stop);
        let load = load.await;
        let after = self.counters().await?;
        Ok(MeasuredPoint {
            rate,
            at_once,
            load,
            counted: after.zip(before).map(|(after, before)| after - before),
        })
    }

    /// Returns the server's own counts of drafts so far, if its metrics are read and have them.
    async fn counters(&self) -> anyhow::Result<Option<DraftCounts>> {
        let Some(metrics) = &self.metrics else {
            return Ok(None);
        };
        let text = metrics.get("").await.context("--metrics-url")?;
        Ok(DraftCounts::of_metrics(&String::from_utf8_lossy(&text)))
    }
}

/// Returns the first model that the server lists.
async fn first_model(endpoint: &Endpoint) -> anyhow::Result<String> {
    let unknown = "--model is not given, and the server's list of models tells none";
    let listed = endpoint.get("/models").await.context(unknown)?;
    let listed: Value = serde_json::from_slice(&listed).context(unknown)?;
    let first = listed.pointer("/data/0/id").and_then(Value::as_str);
    Ok(first.context(unknown)?.to_owned())
}

/// Returns the prompts that are asked; how long synthetic ones must be is found out at the server.
async fn prompts(
    asked: &AskedArgs,
    endpoint: &Endpoint,
    form: &RequestForm,
) -> anyhow::Result<PromptSource> {
    let Some(tokens) = asked.input_tokens else {
        return PromptSource::listed(asked.prompts.as_deref());
    };
    let synthetic = |words| SyntheticPrompts {
        words,
        seed: asked.seed,
    };
    let short_form = form.of_one_token();
    let many_words = (tokens as usize / 4).clamp(2 * FEW_WORDS, 512);
    let mut counted = Vec::new();
    for words in [FEW_WORDS, many_words] {
        let body = short_form.body(&synthetic(words).prompt(u64::MAX));
        let answer = endpoint.stream(form.path(), body).await;
        let answer = answer.context("--input-tokens: a request that counts tokens failed")?;
        counted.extend(answer.usage().map(|usage| (words, usage.prompt)));
    }
    let words = match counted[..] {
        [short, long] => words_of(tokens, short, long),
        // Where the server does not count, a word counts as one.
        _ => tokens as usize,
    };
    Ok(PromptSource::Synthetic(synthetic(words)))
}
