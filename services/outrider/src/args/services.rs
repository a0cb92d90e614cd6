//! Flags that say whom a command asks.

use clap::Args;
use serde_json::Value;

use super::{ConnectionArgs, ModelArgs};

/// Whom a command asks.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Services")]
pub struct ServicesArgs {
    /// A running coordinator, HOST:PORT or a URL.
    ///
    /// Without it the three services run in this process, and stop with it.
    #[arg(long, value_name = "URL")]
    pub coordinator: Option<String>,
    #[command(flatten)]
    /// Models of the services in this process.
    pub models: ModelArgs,
    #[command(flatten)]
    /// How the coordinator is connected to.
    pub connection: ConnectionArgs,
}

impl ServicesArgs {
    /// The flags given, as settings.
    pub(crate) fn settings(&self) -> Value {
        let mut settings = self.models.settings();
        self.connection.add_to(&mut settings);
        settings
    }
}
