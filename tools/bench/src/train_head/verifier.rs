//! A verifier for training.

use model::Model;
use model::source::{ModelSource, ServedModel};
use ops::process::Process;
use ops::service_error::ServiceError;
use outrider::cluster;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use verifier::VerifierConfig;

use anyhow::Context;

/// Loads a model without acceptance heads: those it has may be for other weights.
pub(super) fn without_heads(source: &ModelSource) -> anyhow::Result<ServedModel<Model>> {
    Ok(source.load_without_heads()?)
}

/// A verifier in this process, on loopback.
pub(super) struct StartedVerifier {
    pub(super) url: String,
    serving: JoinHandle<Result<(), ServiceError>>,
    stop: CancellationToken,
    /// Stops it too where the command ends early.
    _stops: DropGuard,
}

impl StartedVerifier {
    pub(super) async fn new(
        mut config: VerifierConfig,
        target: Option<&str>,
    ) -> anyhow::Result<Self> {
        if let Some(path) = target {
            path.clone_into(&mut config.model.path);
        }
        config.listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let listener = config.listen.bind().await?;
        let url = cluster::url(&listener)?;
        let source = config.model.clone();
        let served = tokio::task::spawn_blocking(move || without_heads(&source));
        let verifier = verifier::start(
            served.await?.context("--target")?,
            &config,
            Process::default(),
        )?;
        let stop = CancellationToken::new();
        let until = stop.clone().cancelled_owned();
        Ok(Self {
            url,
            serving: tokio::spawn(verifier.serve(listener, until)),
            _stops: stop.clone().drop_guard(),
            stop,
        })
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.serving.await??)
    }
}
