//! Connections of commands to services: with the certificates and the token of the configuration.

use std::time::Duration;

use anyhow::Context;
use client::Client;
use net::Credentials;
use net::MAX_MESSAGE_BYTES;
use net::channel::{self, ChannelConfig, PeerChannel};
use net::fault::{connection_fault, describe};
use ops::process::Process;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use wire::v1::verifier_client::VerifierClient;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::process;
use crate::progress::Bars;

/// A client of a verifier.
pub type VerifierStub = VerifierClient<PeerChannel>;

/// How long what is left of the services of this process is waited for.
const STOPPING: Duration = Duration::from_secs(1);

/// Has `ask` ask the coordinator at `url`; without one, that of three services which run in this process
/// meanwhile. It is told where that is.
///
/// # Errors
/// If there is no coordinator to be asked; and what `ask` says.
pub async fn ask<T>(
    url: Option<&str>,
    config: Config,
    ask: impl AsyncFnOnce(Client, &str) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if let Some(url) = url {
        return ask(to_coordinator(url, &config)?, url).await;
    }
    let mut config = config;
    if let Some(note) = config.leave_out_misfit() {
        anstream::eprintln!("{note}");
    }
    let (process, stop) = (Process::default(), CancellationToken::new());
    let starting = Cluster::start(process, config.on_loopback(), true, Bars::on_stderr(), stop);
    let cluster = Box::pin(starting).await?;
    let url = cluster.coordinator_url.clone();
    let answered = ask(within(&url)?, &url).await;
    // All was said; how the services end is of no account any more.
    let _ = tokio::time::timeout(STOPPING, cluster.stop()).await;
    answered
}

/// Returns a client of the coordinator of this process, on loopback.
pub fn within(url: &str) -> anyhow::Result<Client> {
    let channel = channel::connect(url, &ChannelConfig::default(), &Credentials::default());
    Ok(telling(url, Client::new(channel?)))
}

/// Returns a client of the coordinator at `url`, as `config` says.
fn to_coordinator(url: &str, config: &Config) -> anyhow::Result<Client> {
    let process = process::of_client(config)?;
    let client = Client::connect(url, &config.coordinator.channel, &process.credentials);
    Ok(telling(url, client.context("--coordinator")?))
}

/// Returns the client, which says what it waits for, once for each call.
fn telling(url: &str, client: Client) -> Client {
    let url = url.to_owned();
    client.on_wait(move |waiting| {
        if waiting.before == 0 {
            anstream::eprintln!("waiting for {url}: {}", told(waiting.status));
        }
    })
}

/// Returns what to say of a status: of a connection that broke or did not come about why, without what lies between.
pub fn told(status: &Status) -> String {
    connection_fault(status).unwrap_or_else(|| describe(status))
}

/// Returns a client of the verifier at `url`, as `config` says: it is talked to as a coordinator would.
pub fn to_verifier(url: &str, config: &Config) -> anyhow::Result<VerifierStub> {
    let process = process::of_peer(config, &Process::default())?;
    let channel = channel::connect(url, &config.coordinator.channel, &process.credentials);
    let client = VerifierClient::new(channel.context("--verifier")?);
    Ok(client.max_decoding_message_size(MAX_MESSAGE_BYTES))
}
