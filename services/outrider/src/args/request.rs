//! Flags of a request, whatever its prompt is.

use clap::Args;
use wire::v1;

use super::{MethodArgs, ServicesArgs};

/// Who answers, and how.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Served model; the coordinator's first one if not given.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Most output tokens; 256 if not given, or what the model's context leaves.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    /// Divides the logits; 0 is greedy. 1 if not given.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Keeps the most likely tokens that together reach this probability.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Keeps the K most likely tokens; 0 keeps all.
    #[arg(
        long,
        value_name = "K",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    top_k: u32,
    /// Keeps tokens at least this fraction as likely as the most likely one.
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    min_p: f32,
    /// Makes the output repeatable; drawn, and reported, if not given.
    #[arg(long, value_name = "S", value_parser = seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Ends the output before this text; may be given several times.
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Goes on after the model's end token.
    #[arg(long)]
    ignore_eos: bool,
    #[command(flatten)]
    method: MethodArgs,
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

impl RequestArgs {
    /// The request without its prompt; what was not given is left to the coordinator.
    pub(crate) fn request(&self) -> anyhow::Result<v1::GenerateRequest> {
        let mut request = v1::GenerateRequest {
            model: self.model.clone().unwrap_or_default(),
            max_tokens: self.max_tokens,
            sampling: Some(v1::SamplingParams {
                temperature: self.temperature,
                top_p: self.top_p,
                top_k: self.top_k,
                min_p: self.min_p,
                ..Default::default()
            }),
            seed: self.seed,
            stop: self.stop.clone(),
            ignore_eos: self.ignore_eos,
            ..Default::default()
        };
        self.method.apply(&mut request)?;
        Ok(request)
    }
}
