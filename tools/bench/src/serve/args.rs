//! Flags of `outrider-bench serve`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use super::endpoint::Endpoint;
use super::form::RequestForm;
use super::points::LoadPointArgs;
use super::slo::Slo;
use crate::ranges;

#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) asked: AskedArgs,
    #[command(flatten)]
    pub(super) load: LoadPointArgs,
    #[command(flatten)]
    pub(super) told: ToldArgs,
}

/// Which server is measured.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct ServerArgs {
    /// Where its API is, as clients have it for their base URL: most servers' ends with /v1.
    #[arg(long, value_name = "URL")]
    pub(super) url: String,
    /// Model to ask. Without it, the first that the server lists at /models.
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Asks /chat/completions, each prompt being a user's message. Without it, /completions, whose prompts no template
    /// changes.
    #[arg(long)]
    pub(super) chat: bool,
    /// File with the key that is sent as `Authorization: Bearer`.
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// PEM file of the authorities whose certificates are believed at https; without it, those of the public web.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Where vLLM's metrics are, as in http://127.0.0.1:8000/metrics: read before and after each load point, for the share
    /// of draft tokens accepted. Whatever else is asked of the server meanwhile counts too. Not needed where answers tell
    /// it: outrider's, llama.cpp's, vLLM's with --per-request-spec-decode-metrics, SGLang's with --extra-body
    /// '{"return_spec_tokens_details": true}'.
    #[arg(long, value_name = "URL")]
    metrics_url: Option<String>,
    /// Seconds until a request that has not been answered whole counts as failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    timeout: f64,
}

impl ServerArgs {
    /// Returns the server, and where its metrics are.
    ///
    /// # Errors
    /// Names the flag whose value cannot be used.
    pub(super) fn endpoints(&self) -> anyhow::Result<(Endpoint, Option<Endpoint>)> {
        let limit = Duration::from_secs_f64(self.timeout);
        let to = |flag, url| Endpoint::new(flag, url, self.ca_file.as_deref(), limit);
        let mut endpoint = to("--url", &self.url)?;
        if let Some(file) = &self.api_key_file {
            endpoint = endpoint.with_key(file)?;
        }
        let metrics = self.metrics_url.as_deref();
        let metrics = metrics.map(|url| to("--metrics-url", url)).transpose()?;
        Ok((endpoint, metrics))
    }
}

/// What it is asked.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(super) struct AskedArgs {
    /// File of prompts, one JSON object a line: {"prompt": ..., "kind": ...}. Without it, the built-in ones: twenty each of
    /// five kinds. Where it has more than --requests, they are taken from all its parts; where fewer, again.
    ///
    /// Spec-Bench's and SPEED-Bench's lines are read as they are, with their categories as kinds (--per-kind, --chat). You
    /// fetch them yourself. Spec-Bench: data/spec_bench/question.jsonl of github.com/hemingkx/Spec-Bench; for its licence,
    /// and those of the data sets it is made of, see its repository. SPEED-Bench: huggingface.co/datasets/nvidia/SPEED-Bench,
    /// under the NVIDIA Evaluation Dataset License; its page says how the prompts that it only names are put in; write its
    /// table as JSON lines.
    #[arg(long, value_name = "FILE", conflicts_with = "input_tokens")]
    pub(super) prompts: Option<PathBuf>,
    /// Prompts of random words instead, of about so many tokens: two short requests tell how many tokens the server counts
    /// for a word. No two begin alike, so that nothing the server kept is of use. Random text shows what a server holds, not
    /// what its drafts are worth: that depends on text.
    #[arg(long, value_name = "N")]
    pub(super) input_tokens: Option<u32>,
    /// Most output tokens of a request. Add --extra-body '{"ignore_eos": true}' to have all of them.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(super) output_tokens: u32,
    /// Requests of each load point.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(super) requests: usize,
    /// Temperature; 0 is greedy.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f64,
    /// Fields added to every request, over those of this program; a null takes one away. {"speculation": {"enabled": false}}
    /// asks outrider for the target alone; {"cache_prompt": false} has outrider and llama.cpp compute prompts anew that come
    /// again.
    #[arg(long, value_name = "JSON")]
    extra_body: Option<String>,
    /// Seed of arrivals and of synthetic prompts. It is not sent: --extra-body '{"seed": 1}' does that.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
}

impl AskedArgs {
    /// Returns the form of requests to `model`.
    ///
    /// # Errors
    /// If `--extra-body` cannot be used.
    pub(super) fn form(&self, model: &str, is_chat: bool) -> anyhow::Result<RequestForm> {
        let mut form = RequestForm::new(model, is_chat, self.output_tokens);
        form.set("temperature", self.temperature.into());
        match &self.extra_body {
            Some(extra) => form.with_extra(extra),
            None => Ok(form),
        }
    }
}

/// What is told of it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Told")]
pub(super) struct ToldArgs {
    /// Limits within which a request counts for the goodput, as in ttft:200ms,tpot:20ms,e2e:2s: time to the first token,
    /// time of each token after it on average, and of the whole request.
    #[arg(long, value_name = "LIMITS")]
    pub(super) slo: Option<Slo>,
    /// Tells also each kind of prompt by itself: tokens/s of a request, and drafts accepted where answers tell them.
    #[arg(long)]
    pub(super) per_kind: bool,
    /// File to draw a plot in, as SVG: goodput against the rate, or without --slo the time to the first token that 99 of 100
    /// requests keep.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

impl ServeArgs {
    /// Checks what can be checked before anything is sent.
    ///
    /// # Errors
    /// Names the flag that is out of range, and its range.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let asked = &self.asked;
        ranges::at_least_one([
            ("requests", asked.requests),
            ("output-tokens", asked.output_tokens as usize),
            ("input-tokens", asked.input_tokens.unwrap_or(1) as usize),
        ])?;
        ensure!(
            asked.requests <= 1_000_000,
            "--requests: {} is out of range, expected at most 1000000",
            asked.requests
        );
        ensure!(
            asked.input_tokens.unwrap_or_default() <= 1 << 20,
            "--input-tokens: {} is out of range, expected at most 1048576",
            asked.input_tokens.unwrap_or_default()
        );
        ranges::temperature("temperature", asked.temperature as f32)?;
        ensure!(
            self.load.burstiness > 0.0,
            "--burstiness: {} is out of range, expected more than 0",
            self.load.burstiness
        );
        let timeout = self.server.timeout;
        ensure!(
            (0.01..=86_400.0).contains(&timeout),
            "--timeout: {timeout} is out of range, expected 0.01 to 86400 seconds"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    fn args(flags: &[&str]) -> ServeArgs {
        parsed(&[&["--url=http://a/v1"], flags].concat())
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        for (flag, words) in [
            ("--requests=0", "--requests: 0"),
            ("--requests=1000001", "--requests: 1000001"),
            ("--input-tokens=0", "--input-tokens: 0"),
            ("--output-tokens=0", "--output-tokens: 0"),
            ("--temperature=-1", "--temperature: -1"),
            ("--burstiness=0", "--burstiness: 0"),
            ("--timeout=0", "--timeout: 0"),
        ] {
            let error = args(&[flag]).check().expect_err(flag).to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_before_anything_is_sent() {
        for (url, words) in [
            ("127.0.0.1:8000/v1", "must begin with http"),
            ("ftp://a/v1", "must begin with http"),
            ("http://me:secret@a/v1", "neither a user nor a query"),
            ("http://", "is no URL"),
        ] {
            let args: ServeArgs = parsed(&["--url", url]);
            let error = args.server.endpoints().expect_err(url);
            let error = format!("{error:#}");
            assert!(
                error.starts_with("--url: ") && error.contains(words),
                "{error}"
            );
        }
    }
}
