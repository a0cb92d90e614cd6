//! How likely the target model finds outputs and references, as the coordinator reports it.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use client::Client;
use outrider::measure::{self, BASELINE};
use outrider::prompts::Example;
use wire::v1::generate_request::Prompt;
use wire::v1::{GenerateRequest, TokenIds};

use crate::quality::LogLikelihood;
use crate::request::{RequestForm, turn};

/// What failures are told by.
const PURPOSE: &str = "--metric";

/// Asks for the log probabilities of texts under the target model's own distribution.
#[derive(Debug)]
pub(super) struct TargetScorer<'a> {
    client: &'a Client,
    form: &'a RequestForm,
    /// Tokens that end what the model says in a chat.
    end_tokens: Vec<u32>,
    /// Tokens of prompts that were asked for already, by their text.
    prompts: HashMap<String, Vec<u32>>,
}

impl<'a> TargetScorer<'a> {
    /// Returns a scorer for prompts of this form.
    ///
    /// # Errors
    /// If the coordinator cannot be asked, or tells nothing of the model.
    pub(super) async fn new(client: &'a Client, form: &'a RequestForm) -> anyhow::Result<Self> {
        let models = client.models().await;
        let models = models.map_err(|error| anyhow::anyhow!("{PURPOSE}: {error}"))?;
        let described = models.into_iter().next().and_then(|model| model.verifier);
        let described = described.with_context(|| format!("{PURPOSE}: no verifier answers"))?;
        Ok(Self {
            client,
            form,
            end_tokens: described.eos_token_ids,
            prompts: HashMap::new(),
        })
    }

    /// Returns the likelihood of the tokens `output` behind the prompt of `example`, an end token included.
    ///
    /// # Errors
    /// If the coordinator refuses or fails.
    pub(super) async fn output(
        &mut self,
        example: &Example,
        output: &[u32],
    ) -> anyhow::Result<LogLikelihood> {
        let prompt = self.prompt(example).await?;
        let request = GenerateRequest {
            prompt: Some(Prompt::TokenIds(TokenIds {
                ids: [&prompt[..], output].concat(),
            })),
            messages: Vec::new(),
            ..self.form.request("", 0, 0.0, 0)
        };
        let (_, logprobs) = self.ask(request).await?;
        Ok(after(prompt.len(), &logprobs))
    }

    /// Returns the likelihood of the first reference of `example` behind its prompt: of the tokens in which the two together
    /// differ from the prompt alone; in a chat up to the end token that the template puts behind it, this included.
    ///
    /// # Errors
    /// If the coordinator refuses or fails, or the template puts no end token there.
    pub(super) async fn reference(&mut self, example: &Example) -> anyhow::Result<LogLikelihood> {
        let reference = example.references.first().context("no reference")?;
        let prompt = self.prompt(example).await?;
        let mut request = self.form.request(&example.text, 0, 0.0, 0);
        if self.form.is_chat {
            request.messages.push(turn("assistant", reference));
        } else {
            request.prompt = Some(Prompt::Text(format!("{}{reference}", example.text)));
        }
        let (tokens, mut logprobs) = self.ask(request).await?;
        let same = prompt.iter().zip(&tokens).take_while(|(a, b)| a == b);
        let begins = same.count();
        if self.form.is_chat {
            let end = end_of_turn(&tokens, begins, &self.end_tokens);
            let end = end.with_context(|| {
                format!(
                    "{PURPOSE}: the chat template ends no answer with an end token, so where a reference ends is not \
                     known; leave out reference-likelihood, or --chat"
                )
            })?;
            logprobs.truncate(end);
        }
        Ok(after(begins, &logprobs))
    }

    /// Returns the tokens of the prompt of `example`.
    async fn prompt(&mut self, example: &Example) -> anyhow::Result<Vec<u32>> {
        if let Some(known) = self.prompts.get(&example.text) {
            return Ok(known.clone());
        }
        let (tokens, _) = self
            .ask(self.form.request(&example.text, 0, 0.0, 0))
            .await?;
        self.prompts.insert(example.text.clone(), tokens.clone());
        Ok(tokens)
    }

    /// Returns the tokens of the prompt of `request` and the log probabilities of all but the first.
    async fn ask(&self, request: GenerateRequest) -> anyhow::Result<(Vec<u32>, Vec<f32>)> {
        let request = GenerateRequest {
            method: BASELINE.to_owned(),
            max_tokens: Some(0),
            logprobs: true,
            prompt_logprobs: true,
            stop: Vec::new(),
            ..request
        };
        let answer = measure::measure(self.client, &PURPOSE, request).await?;
        let (tokens, logprobs) = (answer.prompt_token_ids, answer.prompt_logprobs);
        ensure!(
            logprobs.len() + 1 == tokens.len(),
            "{PURPOSE}: {} log probabilities of {} tokens came",
            logprobs.len(),
            tokens.len()
        );
        let logprobs = logprobs.iter().map(|of_token| of_token.logprob);
        Ok((tokens, logprobs.collect()))
    }
}

/// Returns the likelihood of the tokens from `first` on; `logprobs` are those of all tokens but the very first, which has
/// none.
fn after(first: usize, logprobs: &[f32]) -> LogLikelihood {
    let those = logprobs.get(first.saturating_sub(1)..).unwrap_or_default();
    LogLikelihood {
        nats: those.iter().copied().map(f64::from).sum(),
        tokens: those.len(),
    }
}

/// Returns the place of the first end token from `begins` on, as a number of log probabilities up to it; none without one.
fn end_of_turn(tokens: &[u32], begins: usize, ends: &[u32]) -> Option<usize> {
    let said = tokens.get(begins..).unwrap_or_default();
    let place = said.iter().position(|token| ends.contains(token));
    // The very first token has no log probability.
    place.map(|place| begins + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_prompt_counts() {
        let logprobs = [-1.0, -2.0, -4.0];
        let likelihood = |nats, tokens| LogLikelihood { nats, tokens };
        // Of four tokens the last two; all that have one; none.
        assert_eq!(after(2, &logprobs), likelihood(-6.0, 2));
        assert_eq!(after(0, &logprobs), likelihood(-7.0, 3));
        assert_eq!(after(4, &logprobs), likelihood(0.0, 0));
        assert_eq!(after(9, &logprobs), likelihood(0.0, 0));
    }

    #[test]
    fn an_answer_in_a_chat_ends_with_its_end_token() {
        // <s> question </s> | answer answer </s> newline
        let tokens = [0, 5, 2, 7, 8, 2, 9];
        let end = end_of_turn(&tokens, 3, &[2]).expect("an end");
        let logprobs = [-1.0, -1.0, -1.0, -0.5, -0.25, -9.0];
        // Places 3, 4 and 5; log probabilities begin at place 1.
        assert_eq!(after(3, &logprobs[..end]).tokens, 3);
        assert_eq!(after(3, &logprobs[..end]).nats, -1.75);
        assert_eq!(end_of_turn(&tokens, 6, &[2]), None);
    }
}
