//! `outrider generate`.

mod args;
mod check;
mod json;
pub(crate) mod terminal;

pub(crate) use args::{GenerateArgs, turn};

use std::error::Error;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use server::{channel, telemetry};
use tonic::{Code, Status, Streaming};
use v1::generate_response::Part;
use wire::status::names_field;
use wire::v1;

use crate::config::Config;
use crate::connect::{self, Coordinator};
use crate::failure::AlreadyReported;

/// How long services may take to start up before they count as unreachable.
const STARTING_UP: Duration = Duration::from_secs(5);

/// What came of an answer so far; the whole of it in the end.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    started: v1::Started,
    pub(crate) text: String,
    token_ids: Vec<u32>,
    /// Where each token came from.
    origins: Vec<i32>,
    /// Of each token, if they were requested.
    logprobs: Vec<v1::TokenLogprobs>,
    finished: v1::Finished,
}

/// Shows an answer as it comes.
pub(crate) trait Printer {
    /// A part of its text.
    fn chunk(&mut self, chunk: &v1::Chunk) -> anyhow::Result<()>;
    /// A round ended.
    fn round(&mut self, round: &v1::RoundReport);
    /// It is whole.
    fn finished(&mut self, answer: &Answer) -> anyhow::Result<()>;
}

/// Generates and prints.
pub(crate) async fn run(args: GenerateArgs, config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.log)?;
    let request = args.request()?;
    let coordinator = args.common.services.coordinator.as_deref();
    let ask = async |client, url: &str| generate(client, url, request, &args).await;
    connect::ask(coordinator, config, ask).await
}

/// Asks, prints, and where another method is given to check against, compares with what that generates.
async fn generate(
    mut client: Coordinator,
    url: &str,
    request: v1::GenerateRequest,
    args: &GenerateArgs,
) -> anyhow::Result<()> {
    let mut printer: Box<dyn Printer> = if args.json {
        Box::new(json::Json)
    } else {
        Box::new(terminal::Terminal::new())
    };
    let parts = begin(&mut client, url, request.clone()).await?;
    let answer = read(parts, url, &mut *printer).await?;
    match &args.check_against {
        Some(method) => check::compare(&mut client, url, request, &answer, method).await,
        None => Ok(()),
    }
}

/// Prints an answer as it comes, and gives back the whole.
pub(crate) async fn read(
    mut parts: Streaming<v1::GenerateResponse>,
    url: &str,
    printer: &mut dyn Printer,
) -> anyhow::Result<Answer> {
    let mut answer = Answer::default();
    while let Some(message) = parts
        .message()
        .await
        .map_err(|status| refused(url, &status))?
    {
        match message.part {
            Some(Part::Started(started)) => answer.started = started,
            Some(Part::Chunk(chunk)) => {
                printer.chunk(&chunk)?;
                answer.text.push_str(&chunk.text);
                answer.token_ids.extend(chunk.token_ids);
                answer.origins.extend(chunk.origins);
                answer.logprobs.extend(chunk.logprobs);
            }
            Some(Part::Round(round)) => printer.round(&round),
            Some(Part::Finished(finished)) => {
                answer.finished = finished;
                printer.finished(&answer)?;
                let finished = &answer.finished;
                if finished.reason() == v1::FinishReason::Error {
                    let code = Code::from(finished.error_code as i32);
                    // A printer of JSON has told it with the rest.
                    let error = anyhow!("{} ({code:?})", finished.error);
                    return Err(AlreadyReported(error).into());
                }
                return Ok(answer);
            }
            // Never requested, or a part of a later version.
            Some(Part::Prompt(_)) | None => {}
        }
    }
    bail!("coordinator {url}: the answer ended before it was finished")
}

/// A request that the model has no room for.
#[derive(Debug)]
pub(crate) struct TooLong(String);

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooLong {}

/// Begins a generation. Services that were just started may need a moment until they answer.
///
/// # Errors
/// [`TooLong`] if fewer messages might do; else whatever is wrong.
pub(crate) async fn begin(
    client: &mut Coordinator,
    url: &str,
    request: v1::GenerateRequest,
) -> anyhow::Result<Streaming<v1::GenerateResponse>> {
    let began = Instant::now();
    let mut reported = false;
    loop {
        let status = match client.generate(request.clone()).await {
            Ok(answer) => return Ok(answer.into_inner()),
            Err(status) => status,
        };
        // The connection closed under the request, and does not say why; the next one may.
        let is_unexplained = status.code() == Code::Cancelled && status.source().is_some();
        let may_start_up = status.code() == Code::Unavailable || is_unexplained;
        let may_start_up = may_start_up && !channel::is_tls_fault(&status);
        if !may_start_up || began.elapsed() > STARTING_UP {
            return Err(refused(url, &status));
        }
        if !reported {
            reported = true;
            anstream::eprintln!("waiting for {url}: {}", wire::status::describe(&status));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What a refused request or an unreachable coordinator comes to.
fn refused(url: &str, status: &Status) -> anyhow::Error {
    match status.code() {
        // What a conversation comes to is named as the prompt.
        Code::InvalidArgument
            if ["prompt", "messages", "max_tokens"]
                .iter()
                .any(|field| names_field(status, field)) =>
        {
            TooLong(status.message().to_owned()).into()
        }
        // The message names the field, the value and what is allowed.
        Code::InvalidArgument => anyhow::anyhow!("{}", status.message()),
        Code::Unimplemented => anyhow::anyhow!("{url} is not a coordinator, or an earlier version"),
        _ => anyhow::anyhow!("coordinator {url}: {}", wire::status::describe(status)),
    }
}
