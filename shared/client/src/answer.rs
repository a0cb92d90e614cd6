//! What comes of a request: events, or a whole answer.

use tonic::Status;
use wire::v1;
use wire::v1::output_part::Part;

/// An answer, collected from its events. It is complete once [`CollectedAnswer::is_whole`].
#[derive(Clone, Debug, Default)]
pub struct CollectedAnswer {
    /// What the request came to; of an answer that was resumed, at the coordinator that went on with it.
    pub started: v1::Started,
    /// Tokens of the prompt, if their log probabilities were requested. Shape `(prompt tokens,)`.
    pub prompt_token_ids: Vec<u32>,
    /// Log probabilities of these. Shape `(prompt tokens - 1,)`: the first has none.
    pub prompt_logprobs: Vec<v1::TokenLogprobs>,
    /// The output; where it holds calls or reasoning, its content.
    pub text: String,
    /// What the model thought before it answered.
    pub reasoning: String,
    /// What it called.
    pub tool_calls: Vec<v1::ToolCall>,
    /// Tokens of the output, end tokens included. Shape `(tokens,)`.
    pub token_ids: Vec<u32>,
    /// Where each of them came from. Shape `(tokens,)`.
    pub origins: Vec<v1::Origin>,
    /// The text that each of them completed. Shape `(tokens,)`.
    pub pieces: Vec<String>,
    /// Log probabilities of each of them. Shape `(tokens,)`; empty if they were not requested.
    pub logprobs: Vec<v1::TokenLogprobs>,
    /// Reports of rounds, if they were requested.
    pub rounds: Vec<v1::RoundReport>,
    /// How often the answer was lost, and gone on with.
    pub resumes: u32,
    /// How it ended, with times and statistics.
    pub finished: v1::Finished,
}

impl CollectedAnswer {
    /// Adds a part of the answer. [`Generation::collect`](crate::Generation::collect) does so with all of them;
    /// whoever reads events by themselves keeps what came of an answer that failed.
    pub fn add(&mut self, event: GenerationEvent) {
        match event {
            GenerationEvent::Started(started) => self.started = started,
            GenerationEvent::Prompt(part) => {
                self.prompt_token_ids.extend(part.token_ids);
                self.prompt_logprobs.extend(part.logprobs);
            }
            GenerationEvent::Chunk(chunk) => {
                let origins = chunk.origins.iter();
                self.origins.extend(
                    origins.map(|&origin| v1::Origin::try_from(origin).unwrap_or_default()),
                );
                self.text.push_str(&chunk.text);
                self.token_ids.extend(chunk.token_ids);
                self.pieces.extend(chunk.pieces);
                self.logprobs.extend(chunk.logprobs);
                for part in chunk.parts.into_iter().filter_map(|part| part.part) {
                    self.add_part(part);
                }
            }
            GenerationEvent::Round(round) => self.rounds.push(*round),
            GenerationEvent::Lost(_) => {}
            GenerationEvent::Resumed(started) => {
                self.started = started;
                self.resumes += 1;
            }
            GenerationEvent::Finished(finished) => self.finished = *finished,
        }
    }

    fn add_part(&mut self, part: Part) {
        match part {
            // It is in the text.
            Part::Content(_) => {}
            Part::Reasoning(text) => self.reasoning.push_str(&text),
            Part::Call(call) => self.tool_calls.push(call),
            Part::Arguments(json) => {
                if let Some(call) = self.tool_calls.last_mut() {
                    call.arguments.push_str(&json);
                }
            }
        }
    }

    /// Returns whether the answer came to its end.
    pub fn is_whole(&self) -> bool {
        self.finished.reason() != v1::FinishReason::Unspecified
    }
}

/// A part of an answer.
#[derive(Clone, Debug)]
pub enum GenerationEvent {
    /// The request was admitted with these settings. It is the first event, and comes once.
    Started(v1::Started),
    /// A part of the prompt with its log probabilities, if the request wanted them; before any output.
    Prompt(v1::PromptPart),
    /// Output.
    Chunk(v1::Chunk),
    /// A round, if reports were asked for. After [`GenerationEvent::Resumed`] there are none of rounds without new
    /// tokens.
    Round(Box<v1::RoundReport>),
    /// The connection or the coordinator was lost; the client is about to ask again.
    Lost(Status),
    /// The answer goes on where it was lost; the coordinator that goes on with it admitted the request so.
    Resumed(v1::Started),
    /// The answer is whole; the last event. Of an answer that was resumed, times and statistics are those of the
    /// request that came to its end, and the tokens used are all.
    Finished(Box<v1::Finished>),
}
