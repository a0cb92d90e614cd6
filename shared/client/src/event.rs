//! The parts of an answer, as a client gets them.

use tonic::Status;
use wire::v1;

/// A part of an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The request was admitted with these settings. It is the first event, and comes once.
    Started(v1::Started),
    /// A part of the prompt with its log probabilities, if the request wanted them; before any output.
    Prompt(v1::PromptPart),
    /// Output.
    Chunk(v1::Chunk),
    /// A round, if reports were asked for. After [`Event::Resumed`] there are none of rounds without new tokens.
    Round(Box<v1::RoundReport>),
    /// The connection or the coordinator was lost; the client is about to ask again.
    Lost(Status),
    /// The answer goes on where it was lost; the coordinator that goes on with it admitted the request so.
    Resumed(v1::Started),
    /// The answer is whole; the last event. Of an answer that was resumed, times and statistics are those of the
    /// request that came to its end, and the tokens used are all.
    Finished(Box<v1::Finished>),
}
