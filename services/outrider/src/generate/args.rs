//! Flags of `outrider generate`, and the request they make.

use std::io::Read;
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgGroup, Args};
use v1::generate_request::Prompt;
use wire::v1;

use crate::method_args::MethodArgs;

/// Arguments of `outrider generate`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("input").required(true).args(["prompt", "prompt_file"])))]
pub(crate) struct GenerateArgs {
    /// The prompt, taken as it is: no chat template is applied.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Reads the prompt from a file, a newline at its end included; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// A running coordinator, http://HOST:PORT. Without it the three services run in this process.
    #[arg(long, value_name = "URL")]
    pub(crate) coordinator: Option<String>,
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
    #[arg(long, value_name = "K", default_value_t = 0)]
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
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Ends the output before this text; may be given several times.
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Goes on after the model's end token.
    #[arg(long)]
    ignore_eos: bool,
    /// Prints one JSON object on stdout and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
    /// Prints one line a round on stderr.
    #[arg(long)]
    show_rounds: bool,
    #[command(flatten)]
    method: MethodArgs,
}

impl GenerateArgs {
    /// The request; what was not given is left to the coordinator.
    pub(crate) fn request(&self) -> anyhow::Result<v1::GenerateRequest> {
        let mut request = v1::GenerateRequest {
            model: self.model.clone().unwrap_or_default(),
            prompt: Some(Prompt::Text(self.prompt()?)),
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
            report_rounds: self.show_rounds,
            ..Default::default()
        };
        self.method.apply(&mut request)?;
        Ok(request)
    }

    fn prompt(&self) -> anyhow::Result<String> {
        match (&self.prompt, &self.prompt_file) {
            (Some(prompt), _) => Ok(prompt.clone()),
            (None, Some(file)) if file.as_os_str() == "-" => {
                let mut prompt = String::new();
                let read = std::io::stdin().read_to_string(&mut prompt);
                read.context("--prompt-file: standard input cannot be read as UTF-8")?;
                Ok(prompt)
            }
            (None, Some(file)) => std::fs::read_to_string(file)
                .with_context(|| format!("--prompt-file: {} cannot be read", file.display())),
            (None, None) => Ok(String::new()),
        }
    }
}
