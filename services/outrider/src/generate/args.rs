//! Flags of `outrider generate`, and the request they make.

use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgGroup, Args};
use coordinator::limits::{MAX_PREDICTION_BYTES, MAX_REQUEST_BYTES};
use net::bounded;
use v1::generate_request::Prompt;
use wire::v1;

use crate::args::RequestArgs;

/// Arguments of `outrider generate`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("input").required(true).args(["text", "prompt", "prompt_file"])))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct GenerateArgs {
    /// The prompt; with --chat what a user says.
    ///
    /// It is taken as it is, unless --chat has the model's chat template applied.
    #[arg(value_name = "PROMPT")]
    text: Option<String>,
    /// The same as a flag, for a prompt that begins with a dash.
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    prompt: Option<String>,
    /// Reads the prompt from a file; `-` is standard input.
    ///
    /// A newline at its end belongs to the prompt. More than 4 MiB are refused.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// A file that the output is expected to be like, such as the text of which the model writes a changed version.
    ///
    /// It is drafted from, and changes no token. More than 128 KiB are refused.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    prediction: Option<PathBuf>,
    /// Asks for an answer, by the model's chat template.
    #[arg(long)]
    chat: bool,
    /// What the model is told before the conversation.
    #[arg(long, value_name = "TEXT", requires = "chat", hide_short_help = true)]
    system: Option<String>,
    /// Prints one JSON object on stdout and nothing else.
    ///
    /// A failure is {"error": {"message": ...}}; one that comes in the middle of an answer stands in its object, beside
    /// what came before it. What only the end of an answer tells is null then.
    #[arg(long)]
    pub(crate) json: bool,
    /// Prints one line a round on stderr.
    #[arg(long)]
    show_rounds: bool,
    /// Adds to --json the log probability of each token under the target model's own distribution, and the N most
    /// likely tokens at its position with theirs (0 to 20).
    #[arg(
        long,
        value_name = "N",
        requires = "json",
        num_args = 0..=1,
        default_missing_value = "0",
        hide_short_help = true
    )]
    logprobs: Option<u32>,
    /// Generates once more by this method, with the same seed, and fails if the tokens are others. With
    /// `target-only` that shows that a lossless and reproducible method is.
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    pub(crate) check_against: Option<String>,
    /// Fails where the coordinator is lost in the middle of an answer. Without this, a coordinator that comes back
    /// within 30 seconds is asked again, with the same seed, and the answer goes on where it was; methods that are not
    /// reproducible fail in any case.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_resume: bool,
    #[command(flatten)]
    pub(crate) common: RequestArgs,
}

impl GenerateArgs {
    /// Returns the request; what was not given is left to the coordinator.
    pub(crate) fn request(&self) -> anyhow::Result<v1::GenerateRequest> {
        let mut request = self.common.request()?;
        request.report_rounds = self.show_rounds;
        request.logprobs = self.logprobs.is_some();
        request.top_logprobs = self.logprobs.unwrap_or(0);
        if let Some(file) = &self.prediction {
            let text = bounded::text_file(file, MAX_PREDICTION_BYTES as u64);
            request.prediction =
                text.with_context(|| format!("--prediction: {} cannot be read", file.display()))?;
        }
        let prompt = self.prompt()?;
        if self.chat {
            let system = self.system.iter().map(|text| turn("system", text));
            request.messages = system.chain([turn("user", &prompt)]).collect();
        } else {
            request.prompt = Some(Prompt::Text(prompt));
        }
        Ok(request)
    }

    /// Returns the prompt, if it stands on the command line.
    fn typed(&self) -> Option<&str> {
        self.text.as_deref().or(self.prompt.as_deref())
    }

    /// Returns what the answer goes on from, as far as it is worth to be shown before it.
    pub(crate) fn shown_prompt(&self) -> Option<&str> {
        self.typed().filter(|_| !self.chat)
    }

    fn prompt(&self) -> anyhow::Result<String> {
        let most = MAX_REQUEST_BYTES as u64;
        match (self.typed(), &self.prompt_file) {
            (Some(prompt), _) => Ok(prompt.to_owned()),
            (None, Some(file)) if file.as_os_str() == "-" => {
                bounded::text(std::io::stdin().lock(), most)
                    .context("--prompt-file: standard input cannot be read")
            }
            (None, Some(file)) => bounded::text_file(file, most)
                .with_context(|| format!("--prompt-file: {} cannot be read", file.display())),
            (None, None) => Ok(String::new()),
        }
    }
}

/// Returns a turn of a conversation.
pub(crate) fn turn(role: &str, content: &str) -> v1::ChatMessage {
    v1::ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    }
}
