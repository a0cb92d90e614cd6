//! One output of a request, collected from the parts of its answer.

use std::sync::Arc;

use futures_util::StreamExt;
use speculation::session::Origin;
use text::ServedText;
use tonic::{Code, Status};
use wire::v1;
use wire::v1::generate_response::Part;

use crate::driver::AnswerStream;

/// A token of the output, or of the prompt, with its log probabilities, if they were requested.
#[derive(Clone, Debug)]
pub(super) struct OutputToken {
    pub(super) id: u32,
    /// The text that it completed.
    pub(super) piece: String,
    pub(super) logprobs: Option<v1::TokenLogprobs>,
}

/// An output as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) started: v1::Started,
    /// The prompt's tokens, if their log probabilities were requested.
    pub(super) prompt: Vec<OutputToken>,
    pub(super) text: String,
    /// Characters of the text.
    pub(super) chars: usize,
    pub(super) tokens: Vec<OutputToken>,
    pub(super) finished: v1::Finished,
}

/// What a part of an answer adds to an output.
#[derive(Debug)]
pub(super) enum Added {
    /// Tokens of the prompt, before all others.
    Prompt(Vec<OutputToken>),
    /// Text, and the tokens that it came with.
    Piece(String, Vec<OutputToken>),
    /// It is whole.
    End,
    /// Nothing that a client sees.
    Nothing,
}

impl Output {
    /// Takes a part of the answer.
    ///
    /// # Errors
    /// The failure that ended the answer.
    pub(super) fn add(
        &mut self,
        part: Option<Part>,
        text: &Arc<ServedText>,
    ) -> Result<Added, Status> {
        match part {
            Some(Part::Started(started)) => self.started = started,
            Some(Part::Prompt(part)) => {
                let before: Vec<_> = self.prompt.iter().map(|token| token.id).collect();
                let tokens = prompt_tokens(part, &before, text);
                self.prompt.extend(tokens.iter().cloned());
                return Ok(Added::Prompt(tokens));
            }
            Some(Part::Chunk(chunk)) => {
                let tokens = tokens_of(&chunk);
                self.text.push_str(&chunk.text);
                self.chars += chunk.text.chars().count();
                self.tokens.extend(tokens.iter().cloned());
                return Ok(Added::Piece(chunk.text, tokens));
            }
            Some(Part::Finished(finished)) => {
                let failed = finished.reason() == v1::FinishReason::Error;
                let (code, error) = (finished.error_code as i32, finished.error.clone());
                self.finished = finished;
                if failed {
                    return Err(Status::new(Code::from_i32(code), error));
                }
                return Ok(Added::End);
            }
            Some(Part::Round(_)) | None => {}
        }
        Ok(Added::Nothing)
    }

    /// The whole output.
    ///
    /// # Errors
    /// The failure that ended it.
    pub(super) async fn collect(
        mut parts: AnswerStream,
        text: &Arc<ServedText>,
    ) -> Result<Self, Status> {
        let mut output = Self::default();
        while let Some(message) = parts.next().await {
            if let Added::End = output.add(message?.part, text)? {
                return Ok(output);
            }
        }
        Err(Status::internal("the answer ended before it was finished"))
    }

    /// Why it ended, in OpenAI's words.
    pub(super) fn finish_reason(&self) -> &'static str {
        match self.finished.reason() {
            v1::FinishReason::Length => "length",
            v1::FinishReason::Stop
            | v1::FinishReason::Cancelled
            | v1::FinishReason::Error
            | v1::FinishReason::Unspecified => "stop",
        }
    }
}

fn tokens_of(chunk: &v1::Chunk) -> Vec<OutputToken> {
    let mut logprobs = chunk.logprobs.iter().cloned();
    let tokens = chunk.token_ids.iter().zip(&chunk.pieces);
    let tokens = tokens.map(|(&id, piece)| OutputToken {
        id,
        piece: piece.clone(),
        logprobs: logprobs.next(),
    });
    tokens.collect()
}

/// The tokens of `part` of a prompt that stand after `before`.
fn prompt_tokens(part: v1::PromptPart, before: &[u32], text: &Arc<ServedText>) -> Vec<OutputToken> {
    let tokens: Vec<_> = part
        .token_ids
        .iter()
        .map(|&id| (id, Origin::Target))
        .collect();
    let emitted = text::Output::new(Arc::clone(text), Vec::new(), before).emit(&tokens);
    // The prompt's first token has none.
    let first = before.is_empty().then_some(None);
    let logprobs = first.into_iter().chain(part.logprobs.into_iter().map(Some));
    let tokens = part.token_ids.into_iter().zip(emitted.chunk.pieces);
    let tokens = tokens.zip(logprobs);
    tokens
        .map(|((id, piece), logprobs)| OutputToken {
            id,
            piece,
            logprobs,
        })
        .collect()
}

/// What a token stands for by itself: its text, and its bytes.
pub(super) fn token_text(text: &ServedText, token: u32) -> (String, Vec<u8>) {
    let bytes = text.token_bytes(token);
    (String::from_utf8_lossy(&bytes).into_owned(), bytes)
}
