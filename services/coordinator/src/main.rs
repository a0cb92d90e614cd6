//! The coordinator alone, for images that hold nothing else. `outrider serve coordinator` is the same.

use std::path::PathBuf;

use coordinator::CoordinatorConfig;
use serde::{Deserialize, Serialize};
use server::telemetry::{self, LogConfig};
use server::{config, shutdown};

/// The sections of the configuration that concern a coordinator.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    log: LogConfig,
    coordinator: CoordinatorConfig,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let file = std::env::args_os().nth(1).map(PathBuf::from);
    let config = config::load::<Config>(file.as_deref(), &())?.value;
    telemetry::init(&config.log)?;
    let stop = shutdown::on_signal()?;
    coordinator::run(config.coordinator, stop.cancelled()).await?;
    Ok(())
}
