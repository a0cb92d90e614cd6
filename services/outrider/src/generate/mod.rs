//! `outrider generate`.

mod args;
mod check;
mod json;
pub(crate) mod terminal;

pub(crate) use args::{GenerateArgs, turn};

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use server::{channel, telemetry};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};
use v1::generate_response::Part;
use wire::status::names_field;
use wire::v1;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::connect::{self, Coordinator};
use crate::failure::Told;

/// How long services may take to start up before they count as unreachable.
const STARTING_UP: Duration = Duration::from_secs(5);

/// Takes the parts of an answer as they come.
pub(crate) trait Printer {
    fn started(&mut self, started: v1::Started);
    fn chunk(&mut self, chunk: v1::Chunk) -> anyhow::Result<()>;
    fn round(&mut self, round: &v1::RoundReport);
    fn finished(&mut self, finished: &v1::Finished) -> anyhow::Result<()>;
}

/// Generates and prints.
pub(crate) async fn run(args: GenerateArgs, config: Config) -> anyhow::Result<ExitCode> {
    telemetry::init(&config.log)?;
    let request = args.request()?;
    let Some(url) = &args.common.coordinator else {
        let cluster = Cluster::start(config.on_loopback(), CancellationToken::new()).await?;
        let url = cluster.coordinator_url.clone();
        let code = generate(connect::within(&url)?, &url, request, &args).await;
        // The answer is complete; what is left of the services need not be waited for long.
        let _ = tokio::time::timeout(Duration::from_secs(1), cluster.stop()).await;
        return code;
    };
    let client = connect::to_coordinator(url, &config)?;
    generate(client, url, request, &args).await
}

async fn generate(
    mut client: Coordinator,
    url: &str,
    request: v1::GenerateRequest,
    args: &GenerateArgs,
) -> anyhow::Result<ExitCode> {
    let method = args.check_against.as_deref();
    if args.json {
        once_or_twice(&mut client, url, request, method, json::Json::default()).await?;
    } else {
        once_or_twice(&mut client, url, request, method, terminal::Terminal::new()).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks, prints, and where another method is given to check against, compares with what that generates.
async fn once_or_twice(
    client: &mut Coordinator,
    url: &str,
    request: v1::GenerateRequest,
    check_against: Option<&str>,
    mut printer: impl Printer,
) -> anyhow::Result<()> {
    let Some(method) = check_against else {
        answer(client, url, request, &mut printer).await?;
        return Ok(());
    };
    let mut keeping = check::Keeping::new(&mut printer);
    answer(client, url, request.clone(), &mut keeping).await?;
    keeping.compare(client, url, request, method).await
}

/// Asks, and prints the answer as it comes. Returns its text.
async fn answer(
    client: &mut Coordinator,
    url: &str,
    request: v1::GenerateRequest,
    printer: &mut impl Printer,
) -> anyhow::Result<String> {
    let parts = begin(client, url, request).await?;
    read(parts, url, printer).await
}

/// Prints an answer as it comes. Returns its text.
pub(crate) async fn read(
    mut parts: Streaming<v1::GenerateResponse>,
    url: &str,
    printer: &mut impl Printer,
) -> anyhow::Result<String> {
    let mut text = String::new();
    while let Some(message) = parts
        .message()
        .await
        .map_err(|status| refused(url, &status))?
    {
        match message.part {
            Some(Part::Started(started)) => printer.started(started),
            Some(Part::Chunk(chunk)) => {
                text.push_str(&chunk.text);
                printer.chunk(chunk)?;
            }
            Some(Part::Round(round)) => printer.round(&round),
            Some(Part::Finished(finished)) => {
                printer.finished(&finished)?;
                if finished.reason() == v1::FinishReason::Error {
                    let code = Code::from(finished.error_code as i32);
                    // A printer of JSON has told it with the rest.
                    let error = anyhow!("{} ({code:?})", finished.error);
                    return Err(Told(error).into());
                }
                return Ok(text);
            }
            // A part of a later version.
            None => {}
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
    let mut told = false;
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
        if !told {
            told = true;
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
