//! `outrider models`: what of the hub is here, and bringing more.

mod list;
#[cfg(feature = "hub")]
mod pull;

use clap::{Args, Subcommand};

#[cfg(feature = "hub")]
use crate::progress::Bars;

/// Arguments of `outrider models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Downloads models from the hub into its cache, or goes on where that stopped.
    ///
    /// Files that are here already are compared with their hashes, and downloaded again if they are damaged;
    /// commands that only use a model trust what is here.
    ///
    /// HF_HOME or HF_HUB_CACHE says where the cache is, HF_TOKEN gives access to what is not public, HF_ENDPOINT
    /// names another hub, and with HF_HUB_OFFLINE=1 only the cache is looked at.
    Pull {
        /// org/name, org/name@revision or org/name:file.gguf.
        #[arg(required = true, value_name = "MODEL")]
        models: Vec<String>,
    },
    /// Lists the models in the hub's cache, and those built in. Of downloads that did not end it is said what
    /// they lack.
    List {
        /// Prints one JSON array. A failure is {"error": {"message": ...}}.
        #[arg(long)]
        json: bool,
    },
}

/// Downloads or lists.
pub(crate) async fn run(args: ModelsArgs) -> anyhow::Result<()> {
    match args.action {
        #[cfg(feature = "hub")]
        Action::Pull { models } => {
            // Requests block; an interrupt must still end the program.
            let bars = Bars::new();
            let shown = bars.clone();
            let pulling = tokio::task::spawn_blocking(move || pull::run(&models, &shown));
            tokio::select! {
                pulled = pulling => pulled?,
                signal = tokio::signal::ctrl_c() => {
                    signal?;
                    bars.end();
                    anstream::eprintln!("interrupted: the same command goes on from here");
                    std::process::exit(crate::global::INTERRUPTED.into())
                }
            }
        }
        #[cfg(not(feature = "hub"))]
        Action::Pull { .. } => {
            anyhow::bail!("this build cannot ask the hub: build with the feature \"hub\"")
        }
        Action::List { json } => list::run(json),
    }
}
