//! Reads an answer, prints its parts, and turns its errors into messages.

use std::time::Duration;

use anyhow::{Context, anyhow};
use client::{Client, CollectedAnswer, Error, Generation, GenerationEvent};
use coordinator::limits::MAX_REQUEST_BYTES;
use net::fault::{describe, speaks_http};
use tonic::Code;
use wire::encoded_bytes;
use wire::v1;

use super::terminal::round_line;
use super::{AnswerFault, Printer};
use crate::args::with_flag;
use crate::connect::told;
use crate::failure::{AlreadyReported, one_line};

/// How long nothing may come before that is said.
const SILENCE: Duration = Duration::from_secs(5);

/// What a failure to print is about.
const STDOUT: &str = "stdout cannot be written";

/// A request that the model has no room for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TooLong(String);

/// Asks for an answer.
///
/// # Errors
/// [`TooLong`] if no coordinator takes as large a request; else why it was refused.
pub(crate) async fn begin(
    client: &Client,
    url: &str,
    request: v1::GenerateRequest,
) -> anyhow::Result<Generation> {
    let (found, most) = (encoded_bytes(&request), MAX_REQUEST_BYTES as u64);
    if found > most {
        let problem = format!("prompt: a request of {found} bytes, a coordinator takes {most}");
        return Err(TooLong(problem).into());
    }
    let generation = client.generate(request).await;
    generation.map_err(|error| explain(url, error))
}

/// Prints an answer as it comes, and adds it to `answer`. What was begun is printed to its end, a failure too.
///
/// # Errors
/// What ended the answer; [`AlreadyReported`] if it was printed with the answer.
pub(crate) async fn read(
    mut generation: Generation,
    url: &str,
    answer: &mut CollectedAnswer,
    printer: &mut dyn Printer,
) -> anyhow::Result<()> {
    loop {
        let error = match next(&mut generation, url, printer).await {
            Ok(Some(event)) => {
                print(&event, answer, url, printer)?;
                answer.add(event);
                continue;
            }
            Ok(None) => return printer.ended(answer, None).context(STDOUT),
            Err(error) => error,
        };
        let code = error.code();
        let told = match &error {
            Error::Failed(finished) => {
                answer.finished.clone_from(finished);
                Some(finished.error.clone())
            }
            _ => None,
        };
        let error = explain(url, error);
        if !is_begun(answer) {
            return Err(error);
        }
        let message = told.unwrap_or_else(|| one_line(&error));
        printer.ended(answer, Some(&AnswerFault { message, code }))?;
        return Err(AlreadyReported(error).into());
    }
}

/// Returns whether there is anything to be told of an answer.
pub(crate) fn is_begun(answer: &CollectedAnswer) -> bool {
    !answer.started.request_id.is_empty()
}

fn print(
    event: &GenerationEvent,
    answer: &CollectedAnswer,
    url: &str,
    printer: &mut dyn Printer,
) -> anyhow::Result<()> {
    match event {
        GenerationEvent::Chunk(chunk) => printer.chunk(chunk).context(STDOUT)?,
        GenerationEvent::Round(round) => printer.note(&round_line(round)),
        GenerationEvent::Lost(status) => {
            let (tokens, why) = (answer.token_ids.len(), status.message());
            printer.note(&format!(
                "lost {url} after {tokens} tokens, asking again: {why}"
            ));
        }
        _ => {}
    }
    Ok(())
}

/// Returns the next event; says so once if it is long in coming.
async fn next(
    generation: &mut Generation,
    url: &str,
    printer: &mut dyn Printer,
) -> Result<Option<GenerationEvent>, Error> {
    if let Ok(event) = tokio::time::timeout(SILENCE, generation.event()).await {
        return event;
    }
    printer.note(&format!(
        "nothing from {url} for {} s: it reads a long prompt, or waits for a verifier that was lost (twenty seconds \
         at most)",
        SILENCE.as_secs()
    ));
    generation.event().await
}

/// Returns the error of a coordinator that is not there, or lacks a peer.
fn unavailable(url: &str, why: &str) -> anyhow::Error {
    anyhow!(
        "coordinator {url}: {why}; `outrider doctor --coordinator {url}` shows which services answer"
    )
}

/// Returns the error that a request which was not answered ends with.
pub(crate) fn explain(url: &str, error: Error) -> anyhow::Error {
    let field = error.field();
    match error {
        // What a conversation comes to is named as the prompt.
        Error::Status(status)
            if matches!(field.as_deref(), Some("prompt" | "messages" | "max_tokens")) =>
        {
            TooLong(status.message().to_owned()).into()
        }
        Error::Status(status) => match status.code() {
            // The message names the field, the value and what is allowed.
            Code::InvalidArgument => anyhow!(with_flag(status.message(), field.as_deref())),
            Code::Unimplemented if speaks_http(&status) => {
                anyhow!("--coordinator {url}: {}", status.message())
            }
            Code::Unimplemented => anyhow!(
                "--coordinator {url}: it speaks gRPC and is not a coordinator; name the \
                 address of coordinator.listen, not a drafter's, a verifier's or an admin port's"
            ),
            Code::Unavailable => unavailable(url, &told(&status)),
            _ => anyhow!("coordinator {url}: {}", describe(&status)),
        },
        Error::Failed(finished) if finished.error_code == Code::Unavailable as u32 => {
            unavailable(url, &finished.error)
        }
        Error::Failed(_) => anyhow!("{error}"),
        _ => anyhow!("coordinator {url}: {error}"),
    }
}
