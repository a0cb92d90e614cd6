//! `outrider chat`.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Context;
use clap::Args;
use server::channel::{self, ChannelConfig};
use server::telemetry;
use server::transport::MAX_MESSAGE_BYTES;
use tokio_util::sync::CancellationToken;
use wire::v1;
use wire::v1::coordinator_client::CoordinatorClient;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::generate::terminal::Terminal;
use crate::generate::{answer, turn};
use crate::request_args::RequestArgs;

/// Arguments of `outrider chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// What the model is told before the conversation.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    #[command(flatten)]
    pub(crate) common: RequestArgs,
}

/// Talks until the input ends.
pub(crate) async fn run(args: ChatArgs, config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.log)?;
    let request = args.common.request()?;
    let Some(url) = &args.common.coordinator else {
        let cluster = Cluster::start(config.on_loopback(), CancellationToken::new()).await?;
        let url = cluster.coordinator_url.clone();
        let talked = talk(&url, &ChannelConfig::default(), &request, &args).await;
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), cluster.stop()).await;
        return talked;
    };
    talk(url, &config.coordinator.channel, &request, &args).await
}

async fn talk(
    url: &str,
    channel: &ChannelConfig,
    request: &v1::GenerateRequest,
    args: &ChatArgs,
) -> anyhow::Result<()> {
    let channel = channel::connect(url, channel).context("--coordinator")?;
    let mut client = CoordinatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let system = args.system.iter().map(|text| turn("system", text));
    let mut messages: Vec<v1::ChatMessage> = system.collect();
    let is_terminal = std::io::stdin().is_terminal();
    loop {
        if is_terminal {
            let mut out = anstream::stderr().lock();
            write!(out, "> ")?;
            out.flush()?;
        }
        // Reading blocks, and the services run in this process.
        let Some(line) = tokio::task::spawn_blocking(next_line).await?? else {
            if is_terminal {
                anstream::eprintln!();
            }
            return Ok(());
        };
        if line.trim().is_empty() {
            continue;
        }
        messages.push(turn("user", &line));
        let request = v1::GenerateRequest {
            messages: messages.clone(),
            ..request.clone()
        };
        match answer(&mut client, url, request, &mut Terminal::new()).await {
            Ok(text) => messages.push(turn("assistant", &text)),
            // On a terminal the conversation goes on without what could not be answered.
            Err(error) if is_terminal => {
                messages.pop();
                anstream::eprintln!("{}", crate::cli::one_line(&error));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The next line of the input without its end, or `None` if there is none.
fn next_line() -> anyhow::Result<Option<String>> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    let read = read.context("standard input cannot be read as UTF-8")?;
    let line = line.trim_end_matches(['\n', '\r']).to_owned();
    Ok((read > 0).then_some(line))
}
