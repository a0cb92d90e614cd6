//! Connections of commands to services: with the certificates and the token of the configuration.

use anyhow::Context;
use server::channel::{self, ChannelConfig, PeerChannel};
use server::process::Process;
use server::transport::MAX_MESSAGE_BYTES;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::verifier_client::VerifierClient;

use crate::config::Config;
use crate::process;

/// A client of a coordinator.
pub type Coordinator = CoordinatorClient<PeerChannel>;

/// A client of a verifier.
pub type Verifier = VerifierClient<PeerChannel>;

/// A client of the coordinator of this process, on loopback.
pub fn within(url: &str) -> anyhow::Result<Coordinator> {
    let channel = channel::connect(url, &ChannelConfig::default(), &Process::default())?;
    Ok(coordinator_of(channel))
}

/// A client of the coordinator at `url`, as `config` says.
pub fn to_coordinator(url: &str, config: &Config) -> anyhow::Result<Coordinator> {
    let process = process::of_client(config)?;
    let channel = channel::connect(url, &config.coordinator.channel, &process);
    Ok(coordinator_of(channel.context("--coordinator")?))
}

/// A client of the verifier at `url`, as `config` says: it is talked to as a coordinator would.
pub fn to_verifier(url: &str, config: &Config) -> anyhow::Result<Verifier> {
    let process = process::of_peer(config, &Process::default())?;
    let channel = channel::connect(url, &config.coordinator.channel, &process);
    Ok(verifier_of(channel.context("--verifier")?))
}

/// A client of a verifier of this process, on loopback.
pub fn to_verifier_within(url: &str) -> anyhow::Result<Verifier> {
    let channel = channel::connect(url, &ChannelConfig::default(), &Process::default())?;
    Ok(verifier_of(channel))
}

fn coordinator_of(channel: PeerChannel) -> Coordinator {
    CoordinatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

fn verifier_of(channel: PeerChannel) -> Verifier {
    VerifierClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}
