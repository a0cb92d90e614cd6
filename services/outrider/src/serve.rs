//! `outrider serve`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use server::{shutdown, telemetry};

use crate::cluster::Cluster;
use crate::config::Config;

/// Arguments of `outrider serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// All three services in one process. The coordinator uses this process's drafter and verifier,
    /// whatever coordinator.models says.
    All {
        /// Address of the coordinator.
        #[arg(long, value_name = "IP:PORT")]
        listen: Option<String>,
    },
    /// Proposes draft tokens with a small model.
    Drafter(PeerArgs),
    /// Scores draft blocks with the target model and decides them.
    Verifier(PeerArgs),
    /// Talks to clients and runs the loop between drafters and verifiers.
    Coordinator(CoordinatorArgs),
}

#[derive(Debug, Args)]
struct PeerArgs {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Checkpoint folder (config.json, model.safetensors, tokenizer.json), GGUF file,
    /// `org/name[@revision][:file.gguf]` of the hub, or embedded:target, embedded:draft, embedded:small.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Format the weights are computed in: q8_0, q4_k or f32 on a CPU; bf16, f16 or f32 on a GPU; auto is
    /// the first of these, but q4_k for a file that is mostly in it.
    #[arg(long, value_name = "FORMAT")]
    dtype: Option<String>,
    /// Where the model is computed: cpu, or cuda or cuda:N for a GPU.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

#[derive(Debug, Args)]
struct CoordinatorArgs {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// A drafter's URL, http://HOST:PORT; may be given several times.
    #[arg(long = "drafter", value_name = "URL", requires = "verifiers")]
    drafters: Vec<String>,
    /// A verifier's URL, http://HOST:PORT; may be given several times. With these flags one model
    /// is served, called "default".
    #[arg(long = "verifier", value_name = "URL")]
    verifiers: Vec<String>,
}

impl ServeArgs {
    /// The flags given, as settings.
    pub(crate) fn settings(&self) -> Value {
        match &self.role {
            Role::All { listen } => json!({ "coordinator": { "listen": listen } }),
            Role::Drafter(args) => json!({ "drafter": args.settings() }),
            Role::Verifier(args) => json!({ "verifier": args.settings() }),
            Role::Coordinator(args) => json!({ "coordinator": args.settings() }),
        }
    }
}

impl PeerArgs {
    fn settings(&self) -> Value {
        let model = json!({ "path": self.model, "dtype": self.dtype, "device": self.device });
        json!({ "listen": self.listen, "model": model })
    }
}

impl CoordinatorArgs {
    fn settings(&self) -> Value {
        if self.verifiers.is_empty() {
            return json!({ "listen": self.listen });
        }
        let model =
            json!({ "name": "default", "drafters": self.drafters, "verifiers": self.verifiers });
        json!({ "listen": self.listen, "models": [model] })
    }
}

/// Serves until a signal, then drains.
pub(crate) async fn run(args: ServeArgs, config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.log)?;
    let stop = shutdown::on_signal()?;
    match args.role {
        Role::All { .. } => Cluster::start(config, stop).await?.ended().await?,
        Role::Drafter(_) => drafter::run(config.drafter, stop.cancelled()).await?,
        Role::Verifier(_) => verifier::run(config.verifier, stop.cancelled()).await?,
        Role::Coordinator(_) => coordinator::run(config.coordinator, stop.cancelled()).await?,
    }
    Ok(())
}
