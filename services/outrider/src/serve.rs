//! `outrider serve`.

mod reloading;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::{Args, Subcommand};
use net::listen::{Listen, ServerConfig};
use ops::config::LoadedConfig;
use ops::open_files::{self, PortGroup};
use ops::process::Process;
use ops::{admin, shutdown, telemetry};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{ModelArgs, TlsArgs};
use crate::check::{self, ServeRole};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::global::is_default;
use crate::process;
use crate::progress::Bars;
use reloading::SighupReload;

/// Arguments of `outrider serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: ServeCommand,
    /// Address of the admin port (/metrics, /livez, /readyz, gRPC health), or `off`.
    #[arg(long, global = true, value_name = "IP:PORT")]
    admin: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    /// All three services in one process. The coordinator uses this process's drafter and verifier,
    /// whatever coordinator.models says.
    All {
        #[command(flatten)]
        front: FrontArgs,
        #[command(flatten)]
        models: ModelArgs,
    },
    /// Proposes draft tokens with a small model.
    Drafter(PeerArgs),
    /// Scores draft blocks with the target model and decides them.
    Verifier(PeerArgs),
    /// Talks to clients and runs the loop between drafters and verifiers.
    Coordinator {
        #[command(flatten)]
        front: FrontArgs,
        /// A drafter's URL, http://HOST:PORT or https://HOST:PORT; may be given several times.
        #[arg(long = "drafter", value_name = "URL", requires = "verifiers")]
        drafters: Vec<String>,
        /// A verifier's URL, http://HOST:PORT or https://HOST:PORT; may be given several times. With these flags one model
        /// is served, called "default".
        #[arg(long = "verifier", value_name = "URL")]
        verifiers: Vec<String>,
    },
}

#[derive(Debug, Args, Serialize)]
struct PeerArgs {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    #[serde(skip)]
    listen: Option<String>,
    /// Checkpoint folder (config.json, model.safetensors, tokenizer.json), GGUF file or a folder with one,
    /// `org/name[@revision][:file.gguf]` of the hub, or embedded:target, embedded:draft, embedded:small.
    #[arg(long, value_name = "MODEL")]
    #[serde(rename = "path")]
    model: Option<String>,
    /// Format the weights are computed in: q8_0, q4_k or f32 on a CPU; bf16, f16, f32, q8_0 or q4_k on a GPU; auto is
    /// the first of these, but q4_k for a file that is mostly in it.
    #[arg(long, value_name = "FORMAT")]
    dtype: Option<String>,
    /// Format that keys and values are held in: q8_0, f16 or f32 on a CPU, on a GPU that of the weights; auto is f32
    /// beside weights in f32, and f16 beside others.
    #[arg(long, value_name = "FORMAT")]
    kv_dtype: Option<String>,
    /// Where the model is computed: cpu, or cuda or cuda:N for a GPU.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// What computes the model: outrider, this program's own runtime; candle for folders of some other families; or
    /// llama-cpp for any GGUF file that llama.cpp loads, in programs built with the feature of that name. auto is the
    /// first of the first two that knows the family; `outrider models families` lists them.
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
}

/// Where a coordinator listens, the names of its first model, and what holds where a request does not say.
#[derive(Debug, Args, Serialize)]
struct FrontArgs {
    /// Address of the coordinator.
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Address of the OpenAI API, or `off`.
    #[arg(long, value_name = "IP:PORT")]
    #[serde(skip)]
    http: Option<String>,
    /// Name that the model is served under; may be given several times.
    ///
    /// Answers tell the first, requests may give any. Without it `serve all` takes the name of the target model's file or
    /// folder, and `serve coordinator` the names of the configuration.
    #[arg(long = "served-model-name", value_name = "NAME")]
    #[serde(rename = "served_model_name", skip_serializing_if = "Vec::is_empty")]
    served_model_names: Vec<String>,
    /// Who proposes where a request does not say: `auto` (the draft model, or max-gram where no drafter has one), `model`,
    /// `max-gram` (drafts copied from the text; `ngram` and `lookup` name it too) or `cascade`.
    #[arg(long, value_name = "WHO")]
    drafting: Option<String>,
    /// Draft tokens a round where a request does not say: `auto` (as many as pay, by what was measured) or 1 to 64.
    #[arg(long, value_name = "auto|K")]
    draft_len: Option<String>,
}

impl ServeCommand {
    /// Returns which services are served.
    fn role(&self) -> ServeRole {
        match self {
            Self::All { .. } => ServeRole::All,
            Self::Drafter(_) => ServeRole::Drafter,
            Self::Verifier(_) => ServeRole::Verifier,
            Self::Coordinator { .. } => ServeRole::Coordinator,
        }
    }
}

impl ServeArgs {
    /// Returns the flags given, as settings.
    pub(crate) fn settings(&self) -> Value {
        let mut settings = match &self.command {
            ServeCommand::All { front, models } => {
                let mut settings = models.settings();
                settings["coordinator"] = front.settings();
                settings
            }
            ServeCommand::Drafter(args) => json!({ "drafter": args.settings() }),
            ServeCommand::Verifier(args) => json!({ "verifier": args.settings() }),
            ServeCommand::Coordinator {
                front,
                drafters,
                verifiers,
            } => {
                let mut coordinator = front.settings();
                if !verifiers.is_empty() {
                    let model =
                        json!({ "name": "default", "drafters": drafters, "verifiers": verifiers });
                    coordinator["models"] = json!([model]);
                }
                json!({ "coordinator": coordinator })
            }
        };
        settings["admin"] = json!({ "listen": self.admin });
        self.tls.add_to(&mut settings);
        settings
    }
}

impl PeerArgs {
    fn settings(&self) -> Value {
        json!({ "listen": self.listen, "model": self })
    }
}

impl FrontArgs {
    /// Returns the flags given, as settings of the coordinator.
    fn settings(&self) -> Value {
        let mut coordinator = json!(self);
        coordinator["http"] = json!({ "listen": self.http });
        coordinator
    }
}

/// How long a process may take to end after its services have drained.
const EXIT_LIMIT: Duration = Duration::from_secs(1);

/// Returns how long the drain of `role` takes at most.
fn drain_grace(role: ServeRole, config: &Config) -> Duration {
    let grace = |is_served: bool, server: &ServerConfig| {
        let grace = is_served.then(|| server.drain_grace());
        grace.unwrap_or_default()
    };
    let coordinator = grace(role.has_coordinator(), &config.coordinator.server);
    let drafter = grace(role.has_drafter(), &config.drafter.server);
    // Drafter and verifier drain once the coordinator beside them has.
    coordinator + drafter.max(grace(role.has_verifier(), &config.verifier.server))
}

/// Leaves each port of `role` the connections that the system allows files for.
fn fit_open_files(role: ServeRole, config: &mut Config) {
    let models = config.coordinator.models.iter();
    let peers = models.map(|model| model.verifiers.len() + model.drafters.len());
    let outside = match role {
        ServeRole::All => 2,
        ServeRole::Coordinator => peers.sum(),
        ServeRole::Drafter | ServeRole::Verifier => 0,
    };
    let has_http = config.coordinator.http.listen.listen().is_some();
    let services = [
        (
            role.has_coordinator(),
            &mut config.coordinator.server,
            1 + usize::from(has_http),
        ),
        (role.has_drafter(), &mut config.drafter.server, 1),
        (role.has_verifier(), &mut config.verifier.server, 1),
    ];
    let served = services.into_iter().filter(|(is_served, ..)| *is_served);
    let mut ports: Vec<_> = served
        .map(|(_, server, count)| PortGroup { server, count })
        .collect();
    open_files::fit(outside, &mut ports);
}

/// Returns whether `role` connects to peers that may ask for its certificate.
fn connects_by_tls(role: ServeRole, config: &Config) -> bool {
    let models = config.coordinator.models.iter();
    let mut peers = models.flat_map(|model| model.verifiers.iter().chain(&model.drafters));
    role == ServeRole::Coordinator && peers.any(|url| url.starts_with("https://"))
}

/// Serves until a signal, then drains; one that comes before models are loaded ends it at once. `read` reads the
/// configuration anew, from where `loaded` came.
pub(crate) async fn run(
    args: ServeArgs,
    loaded: LoadedConfig<Config>,
    read: impl Fn() -> anyhow::Result<LoadedConfig<Config>> + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let mut loaded = loaded;
    let role = args.command.role();
    if role == ServeRole::All {
        on_free_ports(&mut loaded);
    }
    check::refuse(&check::settings(&loaded, role, true))?;
    let (log, sent) = (&loaded.value.log, &loaded.value.telemetry);
    let telemetry = telemetry::start(log, sent, role.into_str())?;
    let is_admin_chosen = !is_default(&loaded, "admin.listen");
    let is_http_chosen = !is_default(&loaded, "coordinator.http.listen");
    let mut config = loaded.value.clone();
    let stop = shutdown::on_signal()?;
    let limit = drain_grace(role, &config) + telemetry.flush_limit() + EXIT_LIMIT;
    shutdown::exit_within(stop.clone(), limit);
    let process = Process {
        traces: telemetry.traces.clone(),
        ..Process::default()
    };
    let reloading = SighupReload {
        files: process.reloads.clone(),
        levels: telemetry.levels.clone(),
        loaded,
        read,
    };
    reloading.on_hang_up()?;
    fit_open_files(role, &mut config);
    // Open before anything is loaded and until everything has drained, so that both can be watched.
    let _admin = admin::start(&config.admin, &process, is_admin_chosen).await?;
    let served = Box::pin(serve(role, process, config, is_http_chosen, stop)).await;
    telemetry.flush().await;
    served
}

/// Has the drafter and the verifier beside their coordinator listen on any ports where nobody chose one: nobody else
/// need know them, and another deployment on this machine may have those of the default.
fn on_free_ports(loaded: &mut LoadedConfig<Config>) {
    let [of_drafter, of_verifier] =
        ["drafter.listen", "verifier.listen"].map(|key| is_default(loaded, key));
    let any = Listen::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    if of_drafter {
        loaded.value.drafter.listen = any;
    }
    if of_verifier {
        loaded.value.verifier.listen = any;
    }
}

async fn serve(
    role: ServeRole,
    watched: Process,
    mut config: Config,
    is_http_chosen: bool,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if !connects_by_tls(role, &config) {
        config.tls.warn_of_unshown_certificate();
    }
    match role {
        ServeRole::All => {
            if let Some(note) = config.leave_out_misfit() {
                tracing::info!("{note}");
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                started = Cluster::start(watched, config, is_http_chosen, Bars::lines(), stop.clone()) => {
                    started?.ended().await?;
                }
            }
        }
        ServeRole::Drafter => {
            let process = process::of_peer(&config, &watched)?;
            process::check_listen(&config, "drafter.listen", config.drafter.listen)?;
            drafter::run(config.drafter, process, stop.cancelled()).await?;
        }
        ServeRole::Verifier => {
            let process = process::of_peer(&config, &watched)?;
            process::check_listen(&config, "verifier.listen", config.verifier.listen)?;
            verifier::run(config.verifier, process, stop.cancelled()).await?;
        }
        ServeRole::Coordinator => {
            let process = process::of_coordinator(&config, &watched)?;
            let stopped = stop.cancelled();
            coordinator::run(config.coordinator, process, is_http_chosen, stopped).await?;
        }
    }
    Ok(())
}
