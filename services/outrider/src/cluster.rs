//! The three services in one process, speaking gRPC over loopback.

use anyhow::Context;
use coordinator::{Coordinator, ModelGroup};
use drafter::{Drafter, Loaded};
use model::Model;
use model::source::ServedModel;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use verifier::Verifier;

use crate::config::Config;

/// Three services running in this process.
pub(crate) struct Cluster {
    /// Where the coordinator listens.
    pub(crate) coordinator_url: String,
    services: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Cluster {
    /// Starts the services on the addresses of `config`. The coordinator's models are replaced by
    /// the one this process serves.
    pub(crate) async fn start(config: Config, stop: CancellationToken) -> anyhow::Result<Self> {
        let draft_config = config.drafter.clone();
        let target_source = config.verifier.model.clone();
        let draft = tokio::task::spawn_blocking(move || Loaded::load(&draft_config));
        let target = tokio::task::spawn_blocking(move || target_source.load());
        let target = target.await?.context("verifier.model")?;
        Self::serve(config, draft.await??, target, stop).await
    }

    /// The same with models that are loaded already, whatever `config` names; `draft` is the only draft
    /// model.
    pub(crate) async fn start_with(
        config: Config,
        draft: ServedModel<Model>,
        target: ServedModel<Model>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let draft = Loaded::of(vec![draft], &config.drafter)?;
        Self::serve(config, draft, target, stop).await
    }

    async fn serve(
        mut config: Config,
        draft: Loaded,
        target: ServedModel<Model>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let drafter_listener = config.drafter.listen.bind().await?;
        let verifier_listener = config.verifier.listen.bind().await?;
        let coordinator_listener = config.coordinator.listen.bind().await?;
        let name = config
            .coordinator
            .models
            .first()
            .map(|model| model.name.clone());
        config.coordinator.models = vec![ModelGroup {
            name: name.unwrap_or_else(|| "default".to_owned()),
            drafters: vec![url(&drafter_listener)?],
            verifiers: vec![url(&verifier_listener)?],
        }];
        let coordinator_url = url(&coordinator_listener)?;

        let drafter = Drafter::start(draft, config.drafter).await?;
        let verifier = Verifier::start(target, config.verifier).await?;
        let coordinator = Coordinator::new(config.coordinator).await?;

        let mut services = JoinSet::new();
        // The coordinator stops first, and the others when it has drained: its requests need them.
        let drained = CancellationToken::new();
        let until = drained.clone().cancelled_owned();
        services.spawn(async move { Ok(drafter.serve(drafter_listener, until).await?) });
        let until = drained.clone().cancelled_owned();
        services.spawn(async move { Ok(verifier.serve(verifier_listener, until).await?) });
        let until = stop.clone().cancelled_owned();
        services.spawn(async move {
            let _drained = drained.drop_guard();
            Ok(coordinator.serve(coordinator_listener, until).await?)
        });
        Ok(Self {
            coordinator_url,
            services,
            stop,
        })
    }

    /// Completes when all services have stopped, or one has failed.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.services.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Stops the services and waits for them to drain.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.ended().await
    }
}

/// Where a service on `listener` is reached from this process.
pub(crate) fn url(listener: &TcpListener) -> anyhow::Result<String> {
    let mut address = listener.local_addr()?;
    if address.ip().is_unspecified() {
        // Listening everywhere; reach it here.
        address.set_ip(match address.ip() {
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(format!("http://{address}"))
}
