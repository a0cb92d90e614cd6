//! The verifier alone, for images that hold nothing else. `outrider serve verifier` is the same.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use server::telemetry::{self, LogConfig};
use server::{config, shutdown};
use verifier::VerifierConfig;

/// The sections of the configuration that concern a verifier.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    log: LogConfig,
    verifier: VerifierConfig,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let file = std::env::args_os().nth(1).map(PathBuf::from);
    let config = config::load::<Config>(file.as_deref(), &())?.value;
    telemetry::init(&config.log)?;
    let stop = shutdown::on_signal()?;
    verifier::run(config.verifier, stop.cancelled()).await?;
    Ok(())
}
