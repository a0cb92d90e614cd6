//! Requests of the laboratory: how prompts are put to the model, how tokens are drawn and where outputs end.

mod cuts;
mod input;
mod parquet;
mod shortening;

pub(crate) use cuts::CutArgs;
pub(crate) use input::{InputArgs, source};
pub(crate) use shortening::Shortening;

use clap::Args;
use client::{Client, GenerationEvent};
use outrider::measure::BASELINE;
use outrider::progress;
use outrider::prompts::Example;
use wire::v1::generate_request::Prompt;
use wire::v1::{ChatMessage, GenerateRequest};

/// The forms of files of prompts, as help tells them.
pub(crate) const FORMS: &str = "\
Files of prompts: each JSON line, or item of a list in JSON, is recognised by its fields. Known are
  prompt [kind, answer, id]                    the prompt, and answers that are known, one or a list
  question, answer                             GSM8K; the whole answer is the reference
  turns [question_id, category, reference]     Spec-Bench and MT-Bench: the first turn
  task_id, prompt, canonical_solution          HumanEval; programs are never run
  conversations [id]                           ShareGPT: what a human says first, and the answer to it
  messages [id], or body [custom_id]           the same of OpenAI's messages, and of lines of its batches
A file that ends with .txt holds a prompt a line, one that ends with .parquet rows by their columns. --prompt-field names the field of other forms.";

/// How requests are made, whatever is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Puts each prompt to the model as what a user says, by the model's chat template.
    #[arg(long)]
    chat: bool,
    /// Ends outputs before this text. It may be given several times.
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    #[command(flatten)]
    pub(crate) cuts: CutArgs,
}

/// How a prompt becomes a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestForm {
    /// Whether the model's chat template is applied.
    pub(crate) is_chat: bool,
    /// The output ends before the first of these texts.
    pub(crate) stop: Vec<String>,
    /// Which tokens may be drawn.
    pub(crate) cuts: CutArgs,
}

impl RequestForm {
    /// Returns the request for an answer of so many tokens to `prompt`, by the default method.
    pub(crate) fn request(
        &self,
        prompt: &str,
        max_tokens: u32,
        temperature: f32,
        seed: u64,
    ) -> GenerateRequest {
        let mut request = GenerateRequest {
            stop: self.stop.clone(),
            sampling: Some(self.cuts.sampling(temperature)),
            ..outrider::measure::request(prompt, max_tokens, temperature, seed)
        };
        self.put(prompt, &mut request);
        request
    }

    /// Puts `prompt` into `request`.
    fn put(&self, prompt: &str, request: &mut GenerateRequest) {
        if self.is_chat {
            request.prompt = None;
            request.messages = vec![turn("user", prompt)];
        } else {
            request.prompt = Some(Prompt::Text(prompt.to_owned()));
        }
    }
}

/// Returns a turn of a conversation.
pub(crate) fn turn(role: &str, content: &str) -> ChatMessage {
    ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    }
}

impl RequestArgs {
    /// Returns how prompts become requests.
    pub(crate) fn form(&self) -> RequestForm {
        RequestForm {
            is_chat: self.chat,
            stop: self.stop.clone(),
            cuts: self.cuts,
        }
    }

    /// Cuts the beginnings off `prompts` that have more than `--max-input` tokens, as the coordinator counts them for
    /// `model`, or for its first model if that is empty. Returns how many were cut.
    ///
    /// # Errors
    /// If the coordinator cannot be asked, or what stands around a prompt is longer alone.
    pub(crate) async fn shorten(
        &self,
        client: &Client,
        model: &str,
        prompts: &mut [Example],
    ) -> anyhow::Result<usize> {
        let Some(most) = self.input.max_input else {
            return Ok(0);
        };
        let (form, count) = (self.form(), prompts.len());
        let mut cut = 0;
        for (index, prompt) in prompts.iter_mut().enumerate() {
            progress::show(&format!("counting tokens, prompt {} of {count}", index + 1))?;
            let mut shortening = Shortening::of(&prompt.text);
            while let Some(candidate) = shortening.candidate() {
                let request = GenerateRequest {
                    model: model.to_owned(),
                    method: BASELINE.to_owned(),
                    ..form.request(candidate, 1, 0.0, 0)
                };
                let tokens = prompt_tokens(client, request).await?;
                shortening.answer(tokens.is_some_and(|tokens| tokens <= most.get()));
            }
            let lost = prompt.text.len() - shortening.kept(most)?.len();
            if lost > 0 {
                prompt.text.drain(..lost);
                cut += 1;
            }
        }
        progress::clear()?;
        Ok(cut)
    }
}

/// Returns the tokens of a request's prompt, special tokens and template included; none if they are more than the model's
/// context holds. The coordinator tells them before the model computes anything, and the request is given up then.
async fn prompt_tokens(client: &Client, request: GenerateRequest) -> anyhow::Result<Option<u32>> {
    let mut generation = match client.generate(request).await {
        Ok(generation) => generation,
        Err(error) if error.field().as_deref() == Some("prompt") => return Ok(None),
        Err(error) => anyhow::bail!("--max-input: {error}"),
    };
    let first = generation.event().await;
    match first.map_err(|error| anyhow::anyhow!("--max-input: {error}"))? {
        Some(GenerationEvent::Started(started)) => Ok(Some(started.prompt_tokens)),
        _ => anyhow::bail!("--max-input: the coordinator tells no tokens of the prompt"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    #[test]
    fn a_request_says_what_the_flags_say() {
        let flags = ["--chat", "--stop", "\n", "--stop", "END", "--top-p", "0.9"];
        let args: RequestArgs = parsed(&flags);
        let request = args.form().request("Hi", 7, 0.5, 3);
        assert_eq!(
            (request.prompt, &request.messages[..]),
            (None, &[turn("user", "Hi")][..])
        );
        assert_eq!(request.stop, ["\n", "END"]);
        let sampling = request.sampling.expect("sampling");
        assert_eq!(
            (sampling.temperature, sampling.top_p),
            (Some(0.5), Some(0.9))
        );
        let plain = RequestForm::default().request("Hi", 7, 0.5, 3);
        assert_eq!(plain.prompt, Some(Prompt::Text("Hi".to_owned())));
        assert!(plain.messages.is_empty() && plain.stop.is_empty());
    }
}
