//! What a coordinator says to requests.

use client::v1::generate_response::Part;
use client::v1::{Chunk, FinishReason, Finished, Origin, Started, Usage};
use tonic::Status;

/// What is said to one request.
pub(crate) enum Reply {
    Refusal(Status),
    /// Parts of an answer, and what follows them.
    Answer(Vec<Part>, End),
    /// Nothing, not even that the request is taken.
    Silence,
}

/// What follows the parts of an answer.
pub(crate) enum End {
    /// The end of the stream.
    Stream,
    Status(Status),
    /// Nothing.
    Silence,
}

/// The coordinator's seed, where a request has none.
pub(crate) const SEED: u64 = 7;

/// The tokens of every answer.
pub(crate) const TOKENS: [u32; 6] = [10, 11, 12, 13, 14, 15];

/// Their text.
pub(crate) const TEXT: &str = "<10><11><12><13><14><15>";

pub(crate) fn started(reproducible: bool) -> Part {
    Part::Started(Started {
        request_id: "request".to_owned(),
        model: "default".to_owned(),
        method: "coupled".to_owned(),
        seed: SEED,
        prompt_tokens: 3,
        max_tokens: TOKENS.len() as u32,
        reproducible,
        ..Default::default()
    })
}

pub(crate) fn chunk(tokens: &[u32]) -> Part {
    let pieces: Vec<String> = tokens.iter().map(|token| format!("<{token}>")).collect();
    Part::Chunk(Chunk {
        text: pieces.concat(),
        token_ids: tokens.to_vec(),
        origins: vec![Origin::Accepted.into(); tokens.len()],
        pieces,
        logprobs: Vec::new(),
        ..Default::default()
    })
}

pub(crate) fn finished() -> Part {
    Part::Finished(Finished {
        reason: FinishReason::Length.into(),
        seed: SEED,
        usage: Some(Usage {
            prompt_tokens: 3,
            completion_tokens: TOKENS.len() as u32,
            ..Default::default()
        }),
        ..Default::default()
    })
}

/// An answer that ends where `end` says, after so many tokens.
pub(crate) fn cut_after(tokens: usize, end: End) -> Reply {
    Reply::Answer(vec![started(true), chunk(&TOKENS[..tokens])], end)
}

/// The whole answer, in chunks of so many tokens.
pub(crate) fn whole(size: usize) -> Reply {
    let chunks = TOKENS.chunks(size).map(chunk);
    let parts = [started(true)].into_iter().chain(chunks);
    Reply::Answer(parts.chain([finished()]).collect(), End::Stream)
}
