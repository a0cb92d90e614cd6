//! Flags that say whom a command asks.

use clap::Args;

use super::ModelArgs;

/// Whom a command asks.
#[derive(Clone, Debug, Default, Args)]
pub struct ServicesArgs {
    /// A running coordinator, http://HOST:PORT. Without it the three services run in this process.
    #[arg(long, value_name = "URL")]
    pub coordinator: Option<String>,
    #[command(flatten)]
    /// Models of the services in this process.
    pub models: ModelArgs,
}
