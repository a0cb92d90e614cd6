//! One output of a request, out of the parts of its answer.

use std::sync::Arc;

use futures_util::StreamExt;
use speculation::session::Origin;
use text::ServedText;
use tonic::{Code, Status};
use wire::v1;
use wire::v1::generate_response::Part;
use wire::v1::output_part::Part as OutputPart;

use crate::driver::ResponseStream;

/// A token of the output, or of the prompt, with its log probabilities, if they were requested.
#[derive(Clone, Debug)]
pub(super) struct OutputToken {
    pub(super) id: u32,
    /// The text that it completed.
    pub(super) piece: String,
    /// Where it is from.
    pub(super) origin: v1::Origin,
    pub(super) logprobs: Option<v1::TokenLogprobs>,
}

/// What is known of an output so far, without its text and its tokens.
#[derive(Debug, Default)]
pub(super) struct OutputProgress {
    pub(super) started: v1::Started,
    /// Characters of the prompt's tokens received so far.
    pub(super) prompt_chars: usize,
    /// Tokens of the prompt received so far; they come only with their log probabilities.
    pub(super) prompt_tokens: usize,
    /// The detokenizer of the prompt's tokens.
    prompt_text: Option<text::OutputText>,
    /// Characters of the text.
    pub(super) chars: usize,
    /// Tokens of the output.
    pub(super) tokens: usize,
    /// Calls in it.
    calls: usize,
    pub(super) finished: v1::Finished,
}

/// What a part of an answer adds to an output.
#[derive(Debug)]
pub(super) enum OutputDelta {
    /// Tokens of the prompt, before all others.
    Prompt(Vec<OutputToken>),
    /// What is said, in order, and the tokens that it came with.
    Piece(Vec<Said>, Vec<OutputToken>),
    /// What the round came to whose tokens came last, where that was requested.
    Round(v1::RoundReport),
    /// It is whole.
    End,
    /// Nothing that a client sees.
    Nothing,
}

/// A piece of what an output says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// Text for the user.
    Text(String),
    /// What the model thinks before it answers.
    Reasoning(String),
    /// A call begins: its number, from 0, its id and its name.
    Call(usize, v1::ToolCall),
    /// More of the arguments of the call with this number.
    Arguments(usize, String),
}

/// Something that an output says, as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OutputItem {
    Text(String),
    Reasoning(String),
    Call(v1::ToolCall),
}

/// A whole output.
#[derive(Debug, Default)]
pub(super) struct WholeOutput {
    pub(super) progress: OutputProgress,
    /// What it says, in order.
    pub(super) items: Vec<OutputItem>,
    /// Tokens of the prompt and then of the output, if the answer reports tokens.
    pub(super) tokens: Vec<OutputToken>,
}

impl OutputProgress {
    /// Takes a part of the answer.
    ///
    /// # Errors
    /// The failure that ended the answer.
    pub(super) fn add(
        &mut self,
        part: Option<Part>,
        text: &Arc<ServedText>,
    ) -> Result<OutputDelta, Status> {
        match part {
            Some(Part::Started(started)) => self.started = started,
            Some(Part::Prompt(part)) => {
                return Ok(OutputDelta::Prompt(self.add_prompt(part, text)));
            }
            Some(Part::Chunk(chunk)) => {
                self.chars += chunk.text.chars().count();
                self.tokens += chunk.token_ids.len();
                let said = self.said(chunk.text, chunk.parts);
                let logprobs = chunk.logprobs.into_iter().map(Some);
                let mut tokens = output_tokens(chunk.token_ids, chunk.pieces, logprobs);
                for (token, origin) in tokens.iter_mut().zip(chunk.origins) {
                    token.origin = v1::Origin::try_from(origin).unwrap_or_default();
                }
                return Ok(OutputDelta::Piece(said, tokens));
            }
            Some(Part::Finished(finished)) => {
                let failed = finished.reason() == v1::FinishReason::Error;
                let (code, error) = (finished.error_code as i32, finished.error.clone());
                self.finished = finished;
                if failed {
                    return Err(Status::new(Code::from_i32(code), error));
                }
                return Ok(OutputDelta::End);
            }
            Some(Part::Round(report)) => return Ok(OutputDelta::Round(report)),
            None => {}
        }
        Ok(OutputDelta::Nothing)
    }

    /// Returns what a chunk says: its parts, if it has any.
    fn said(&mut self, text: String, parts: Vec<v1::OutputPart>) -> Vec<Said> {
        if parts.is_empty() {
            let text = Some(text).filter(|text| !text.is_empty());
            return text.map(Said::Text).into_iter().collect();
        }
        let parts = parts.into_iter().filter_map(|part| part.part);
        let said = parts.map(|part| match part {
            OutputPart::Content(text) => Said::Text(text),
            OutputPart::Reasoning(text) => Said::Reasoning(text),
            OutputPart::Call(call) => {
                self.calls += 1;
                Said::Call(self.calls - 1, call)
            }
            OutputPart::Arguments(json) => Said::Arguments(self.calls.saturating_sub(1), json),
        });
        said.collect()
    }

    /// Returns the tokens of the next part of the prompt. Its first token has no log probabilities.
    fn add_prompt(&mut self, part: v1::PromptPart, text: &Arc<ServedText>) -> Vec<OutputToken> {
        let new = || text::OutputText::new(Arc::clone(text), Vec::new(), &[]);
        let prompt = self.prompt_text.get_or_insert_with(new);
        let ids = part.token_ids.iter();
        let emitted: Vec<_> = ids.map(|&id| (id, Origin::Target)).collect();
        let pieces = prompt.emit(&emitted).chunk.pieces;
        let first = (self.prompt_tokens == 0).then_some(None);
        let logprobs = first.into_iter().chain(part.logprobs.into_iter().map(Some));
        self.prompt_tokens += part.token_ids.len();
        let chars = pieces.iter().map(|piece| piece.chars().count());
        self.prompt_chars += chars.sum::<usize>();
        output_tokens(part.token_ids, pieces, logprobs)
    }

    /// Returns what was used of it, once it has ended.
    pub(super) fn used(&self) -> Option<&v1::Usage> {
        self.finished.usage.as_ref()
    }

    /// Returns why it ended, in OpenAI's words.
    pub(super) fn finish_reason(&self) -> &'static str {
        match self.finished.reason() {
            v1::FinishReason::Length => "length",
            v1::FinishReason::ToolCalls => "tool_calls",
            v1::FinishReason::Stop
            | v1::FinishReason::Cancelled
            | v1::FinishReason::Error
            | v1::FinishReason::Unspecified => "stop",
        }
    }
}

impl WholeOutput {
    /// Collects the output, with its tokens if `keeps_tokens`.
    ///
    /// # Errors
    /// The failure that ended it.
    pub(super) async fn collect(
        mut parts: ResponseStream,
        text: &Arc<ServedText>,
        keeps_tokens: bool,
    ) -> Result<Self, Status> {
        let mut output = Self::default();
        while let Some(message) = parts.next().await {
            match output.progress.add(message.part, text)? {
                OutputDelta::End => return Ok(output),
                OutputDelta::Prompt(tokens) => output.keep(tokens, keeps_tokens),
                OutputDelta::Piece(said, tokens) => {
                    output.say(said);
                    output.keep(tokens, keeps_tokens);
                }
                OutputDelta::Round(_) | OutputDelta::Nothing => {}
            }
        }
        Err(Status::internal("the answer ended before it was finished"))
    }

    /// Returns whether `said` goes on with the last item, and begins no other.
    pub(super) fn goes_on_with(&self, said: &Said) -> bool {
        matches!(
            (said, self.items.last()),
            (Said::Text(_), Some(OutputItem::Text(_)))
                | (Said::Reasoning(_), Some(OutputItem::Reasoning(_)))
                | (Said::Arguments(..), _)
        )
    }

    /// Adds what is said.
    pub(super) fn say(&mut self, said: Vec<Said>) {
        for said in said {
            match (said, self.items.last_mut()) {
                (Said::Text(text), Some(OutputItem::Text(last)))
                | (Said::Reasoning(text), Some(OutputItem::Reasoning(last))) => {
                    last.push_str(&text);
                }
                (Said::Arguments(_, json), Some(OutputItem::Call(last))) => {
                    last.arguments.push_str(&json);
                }
                (Said::Text(text), _) => self.items.push(OutputItem::Text(text)),
                (Said::Reasoning(text), _) => self.items.push(OutputItem::Reasoning(text)),
                (Said::Call(_, call), _) => self.items.push(OutputItem::Call(call)),
                // Arguments come behind their call.
                (Said::Arguments(..), _) => {}
            }
        }
    }

    /// Returns its text.
    pub(super) fn text(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item {
            OutputItem::Text(text) => Some(text.as_str()),
            OutputItem::Reasoning(_) | OutputItem::Call(_) => None,
        });
        texts.collect()
    }

    /// Returns what the model thought.
    pub(super) fn reasoning(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item {
            OutputItem::Reasoning(text) => Some(text.as_str()),
            OutputItem::Text(_) | OutputItem::Call(_) => None,
        });
        texts.collect()
    }

    /// Returns its calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = &v1::ToolCall> {
        self.items.iter().filter_map(|item| match item {
            OutputItem::Call(call) => Some(call),
            OutputItem::Text(_) | OutputItem::Reasoning(_) => None,
        })
    }

    pub(super) fn keep(&mut self, tokens: Vec<OutputToken>, keeps_tokens: bool) {
        if keeps_tokens {
            self.tokens.extend(tokens);
        }
    }

    /// Returns the tokens of the output alone.
    pub(super) fn own_tokens(&self) -> &[OutputToken] {
        self.tokens
            .get(self.progress.prompt_tokens..)
            .unwrap_or_default()
    }
}

/// Joins tokens with their texts and, as far as there are any, their log probabilities.
fn output_tokens(
    ids: Vec<u32>,
    pieces: Vec<String>,
    mut logprobs: impl Iterator<Item = Option<v1::TokenLogprobs>>,
) -> Vec<OutputToken> {
    let tokens = ids.into_iter().zip(pieces);
    let tokens = tokens.map(|(id, piece)| OutputToken {
        id,
        piece,
        origin: v1::Origin::Unspecified,
        logprobs: logprobs.next().flatten(),
    });
    tokens.collect()
}

/// Returns what a token stands for by itself: its text, and its bytes.
pub(super) fn token_text(text: &ServedText, token: u32) -> (String, Vec<u8>) {
    let bytes = text.token_bytes(token);
    (String::from_utf8_lossy(&bytes).into_owned(), bytes)
}
