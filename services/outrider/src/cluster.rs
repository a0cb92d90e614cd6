//! The services in one process, speaking gRPC over loopback; without a draft model there is no drafter.

use std::net::SocketAddr;

use anyhow::{Context, anyhow};
use coordinator::{Coordinator, ModelGroup};
use drafter::Loaded;
use model::Model;
use model::source::{ServedModel, share_threads};
use net::listen::Listen;
use ops::lifecycle;
use ops::metrics::Metrics;
use ops::process::Process;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::describe::check_pair;

use crate::check::OF_ONE_FAMILY;
use crate::config::Config;
use crate::process;
use crate::progress::Bars;

/// The name of a model that nobody named.
const DEFAULT: &str = "default";

/// The services running in this process.
pub struct Cluster {
    /// Where the coordinator listens.
    pub coordinator_url: String,
    /// Address of the OpenAI API, if it is served.
    pub http: Option<SocketAddr>,
    /// Metrics of the process.
    pub metrics: Metrics,
    services: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Cluster {
    /// Starts the services on the addresses of `config`, in a process that is watched as `process` is;
    /// `is_http_chosen` says whether somebody chose that of the OpenAI API. The coordinator's models are replaced by the one
    /// this process serves; `bars` shows how they are loaded. Whoever does not want to wait until models are loaded drops
    /// the future.
    pub async fn start(
        process: Process,
        config: Config,
        is_http_chosen: bool,
        bars: Bars,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let processes = processes(&config, &process)?;
        let ports = ClusterPorts::bind(&config, is_http_chosen).await?;
        let (mut of_draft, mut of_target) = (config.drafter.clone(), config.verifier.clone());
        share_threads(of_draft.sources_mut().chain([&mut of_target.model]));
        // On threads that nobody waits for if this is given up, or one of the two fails.
        let (watched, watched_too) = (bars.observer(), bars.observer());
        let draft = lifecycle::blocking(move || {
            of_draft
                .drafts()
                .then(|| Loaded::load_observed(&of_draft, &watched))
                .transpose()
        });
        let target = lifecycle::blocking(move || verifier::load(&of_target, &watched_too));
        let loaded = tokio::try_join!(async { anyhow::Ok(target.await?) }, async {
            anyhow::Ok(draft.await?)
        },);
        bars.end();
        let (target, draft) = loaded?;
        Self::serve(config, processes, (draft, target), ports, stop)
    }

    /// Starts the same with models that are loaded already, whatever `config` names; `draft` is the only draft
    /// model.
    pub async fn start_with(
        config: Config,
        draft: ServedModel<Model>,
        target: ServedModel<Model>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let draft = Loaded::of(vec![draft], &config.drafter)?;
        let target = verifier::LoadedTarget::Local(Box::new(target));
        let processes = processes(&config, &Process::default())?;
        let ports = ClusterPorts::bind(&config, true).await?;
        Self::serve(config, processes, (Some(draft), target), ports, stop)
    }

    fn serve(
        mut config: Config,
        (process, of_peers): Processes,
        (draft, target): (Option<drafter::Loaded>, verifier::LoadedTarget),
        ports: ClusterPorts,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        // Nobody but this process's coordinator need learn that they stop, and it has drained by then.
        config.drafter.server.drain_delay_ms = 0;
        config.verifier.server.drain_delay_ms = 0;
        let coordinator_url = url(&ports.coordinator)?;
        let address = ports
            .http
            .as_ref()
            .map(TcpListener::local_addr)
            .transpose()?;
        let metrics = process.metrics.clone();

        let verifier = target.start(&config.verifier, of_peers.clone())?;
        let start = |draft| drafter::start(draft, &config.drafter, of_peers);
        let drafter = draft.map(start).transpose()?.zip(ports.drafter);
        if let Some((drafter, _)) = &drafter {
            let checked = check_pair(&drafter.description, &verifier.description);
            checked.map_err(|mismatch| {
                anyhow!(
                    "the draft model does not fit the target model: {mismatch}; {OF_ONE_FAMILY}"
                )
            })?;
        }
        let drafters = drafter.iter().map(|(_, listener)| url(listener));
        let model = ModelGroup {
            drafters: drafters.collect::<Result<_, _>>()?,
            verifiers: vec![url(&ports.verifier)?],
            ..served_as(&config, &verifier.description.model)
        };
        config.coordinator.models = vec![model];
        let mut coordinator = Coordinator::new(config.coordinator, process)?;
        coordinator.http = ports.http;

        let mut services = JoinSet::new();
        // The coordinator stops first, and the others when it has drained: its requests need them.
        let drained = CancellationToken::new();
        if let Some((drafter, listener)) = drafter {
            let until = drained.clone().cancelled_owned();
            services.spawn(async move { Ok(drafter.serve(listener, until).await?) });
        }
        let until = drained.clone().cancelled_owned();
        services.spawn(async move { Ok(verifier.serve(ports.verifier, until).await?) });
        let until = stop.clone().cancelled_owned();
        services.spawn(async move {
            let _drained = drained.drop_guard();
            Ok(coordinator.serve(ports.coordinator, until).await?)
        });
        Ok(Self {
            coordinator_url,
            http: address.map(reachable),
            metrics,
            services,
            stop,
        })
    }

    /// Completes when all services have stopped, or one has failed.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.services.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Stops the services and waits for them to drain.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.ended().await
    }
}

/// The ports of the services, bound before anything is loaded: one that is taken is told at once.
struct ClusterPorts {
    /// The drafter's listener; none in a process without a drafter.
    drafter: Option<TcpListener>,
    verifier: TcpListener,
    coordinator: TcpListener,
    http: Option<TcpListener>,
}

impl ClusterPorts {
    async fn bind(config: &Config, is_http_chosen: bool) -> anyhow::Result<Self> {
        let bind = async |setting, listen: Listen| listen.bind().await.context(setting);
        let drafter = if config.drafter.drafts() {
            Some(bind("drafter.listen", config.drafter.listen).await?)
        } else {
            None
        };
        Ok(Self {
            drafter,
            verifier: bind("verifier.listen", config.verifier.listen).await?,
            coordinator: bind("coordinator.listen", config.coordinator.listen).await?,
            http: coordinator::bind_http(&config.coordinator.http, is_http_chosen).await?,
        })
    }
}

/// Returns the names of the model that a process serves: those that the configuration gives its first model, else the
/// model's own, which `default` stands for too. The built-in model has no other.
fn served_as(config: &Config, own: &str) -> ModelGroup {
    let first = config.coordinator.models.first();
    let group = first.cloned().unwrap_or_default();
    let of_verifier = &config.verifier.model;
    let is_built_in = of_verifier.is_embedded() && of_verifier.name.is_empty();
    if ![DEFAULT, ""].contains(&group.name.as_str()) || is_built_in {
        return group;
    }
    ModelGroup {
        name: own.to_owned(),
        aliases: vec![DEFAULT.to_owned()],
        ..group
    }
}

/// What the process gives its coordinator, and its peers, which are reached from within alone.
type Processes = (Process, Process);

/// Checks where `config` listens, before anything is loaded.
fn processes(config: &Config, watched: &Process) -> anyhow::Result<Processes> {
    let coordinator = process::of_coordinator(config, watched)?;
    process::check_listen_within(config, "drafter.listen", config.drafter.listen)?;
    process::check_listen_within(config, "verifier.listen", config.verifier.listen)?;
    Ok((coordinator, process::of_peer_within(config, watched)?))
}

/// Returns where a service on `listener` is reached from this process.
pub fn url(listener: &TcpListener) -> anyhow::Result<String> {
    Ok(format!("http://{}", reachable(listener.local_addr()?)))
}

/// Returns the address at which a listener on `address` is reached from this machine.
pub fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        // Listening everywhere; reach it here.
        address.set_ip(match address.ip() {
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}
