//! `outrider generate`.

mod args;
mod json;
pub(crate) mod terminal;

pub(crate) use args::{GenerateArgs, turn};

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use server::channel::{self, ChannelConfig};
use server::telemetry;
use server::transport::MAX_MESSAGE_BYTES;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use v1::coordinator_client::CoordinatorClient;
use v1::generate_response::Part;
use wire::v1;

use crate::cluster::Cluster;
use crate::config::Config;

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
        let code = generate(&url, &ChannelConfig::default(), request, &args).await;
        // The answer is complete; what is left of the services need not be waited for long.
        let _ = tokio::time::timeout(Duration::from_secs(1), cluster.stop()).await;
        return code;
    };
    generate(url, &config.coordinator.channel, request, &args).await
}

async fn generate(
    url: &str,
    channel: &ChannelConfig,
    request: v1::GenerateRequest,
    args: &GenerateArgs,
) -> anyhow::Result<ExitCode> {
    let channel = channel::connect(url, channel).context("--coordinator")?;
    let mut client = CoordinatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    if args.json {
        answer(&mut client, url, request, &mut json::Json::default()).await?;
    } else {
        answer(&mut client, url, request, &mut terminal::Terminal::new()).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks, and prints the answer as it comes. Returns its text.
pub(crate) async fn answer(
    client: &mut CoordinatorClient<Channel>,
    url: &str,
    request: v1::GenerateRequest,
    printer: &mut impl Printer,
) -> anyhow::Result<String> {
    let mut parts = begin(client, url, request).await?;
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
                    bail!("{} ({code:?})", finished.error);
                }
                return Ok(text);
            }
            // A part of a later version.
            None => {}
        }
    }
    bail!("coordinator {url}: the answer ended before it was finished")
}

/// Begins a generation. Services that were just started may need a moment until they answer.
async fn begin(
    client: &mut CoordinatorClient<Channel>,
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
        if status.code() != Code::Unavailable || began.elapsed() > STARTING_UP {
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
        // The message names the field, the value and what is allowed.
        Code::InvalidArgument => anyhow::anyhow!("{}", status.message()),
        Code::Unimplemented => anyhow::anyhow!("{url} is not a coordinator, or an earlier version"),
        _ => anyhow::anyhow!("coordinator {url}: {}", wire::status::describe(status)),
    }
}
