//! The service's life: bind, find a verifier, serve, drain.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use server::health::Health;
use server::process::Process;
use server::transport::MAX_MESSAGE_BYTES;
use server::{lifecycle, reflection};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::service::Routes;
use wire::v1::coordinator_server::CoordinatorServer;

use crate::admitted::PeerKind;
use crate::config::{CoordinatorConfig, MAX_DRAFT_LEN};
use crate::error::CoordinatorError;
use crate::front::{Admission, Service, Shared};
use crate::observe::{Gauges, Observation};
use crate::peer::pool::{Models, ServedModel};

/// Full name of the gRPC service.
const NAME: &str = "outrider.v1.Coordinator";

/// The largest request a client may send; it is read before anyone is admitted.
pub(crate) const MAX_REQUEST_BYTES: usize = 4 << 20;

/// How often a verifier is looked for until one was found.
const SEARCH_INTERVAL: Duration = Duration::from_millis(500);

/// A coordinator ready to serve.
pub struct Coordinator {
    shared: Arc<Shared>,
    process: Process,
}

/// Binds and serves until `shutdown` completes; then drains.
///
/// # Errors
/// [`CoordinatorError`] naming the setting that is wrong, or why serving ended early.
pub async fn run(
    config: CoordinatorConfig,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<(), CoordinatorError> {
    let listener = config.listen.bind().await?;
    Coordinator::new(config, process)
        .await?
        .serve(listener, shutdown)
        .await
}

impl Coordinator {
    /// Checks the configuration. No peer need be there yet.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub async fn new(
        config: CoordinatorConfig,
        process: Process,
    ) -> Result<Self, CoordinatorError> {
        for (key, value) in [
            ("draft_len", config.draft_len),
            ("draft_cap", config.draft_cap),
        ] {
            if value.get() > MAX_DRAFT_LEN {
                let problem = format!("{value} is out of range, expected 1 to {MAX_DRAFT_LEN}");
                return Err(CoordinatorError::Setting {
                    key: key.to_owned(),
                    problem,
                });
            }
        }
        let health = Health::new(NAME, &process).await;
        let process = Process {
            traces: process.traces.of("coordinator"),
            ..process
        };
        let models = Arc::new(Models::new(&config, &process)?);
        let distribution_bytes = config.max_distribution_bytes.get();
        let admission = Admission::new(config.max_requests.get(), distribution_bytes);
        let names = models.names();
        let gauges = gauges(&models, &admission);
        let observation = Observation::new(&process, names.into_iter(), gauges);
        let shared = Arc::new(Shared {
            models,
            admission,
            config,
            health,
            observation,
        });
        Ok(Self { shared, process })
    }

    /// Serves on `listener` until `shutdown` completes, then drains. Reports itself ready once
    /// a verifier of any model has answered.
    ///
    /// # Errors
    /// If the server fails before it is told to stop.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), CoordinatorError> {
        let service = CoordinatorServer::new(Service::new(Arc::clone(&self.shared)))
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let routes = reflection::add_to(Routes::new(service), wire::FILE_DESCRIPTOR_SET, NAME)?;
        let serving = lifecycle::serve(
            routes,
            listener,
            &self.shared.config.server,
            &self.process,
            &self.shared.health,
            shutdown,
        );
        let ready = async {
            let on_first = async || self.shared.health.ready().await;
            find_verifiers(&self.shared.models, on_first).await;
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            served = serving => Ok(served?),
            never = ready => match never {},
        }
    }
}

/// How the coordinator is, for as long as it lives.
fn gauges(
    models: &Arc<Models>,
    admission: &Admission,
) -> impl Fn() -> Option<Gauges> + Send + Sync + 'static {
    let (models, admission) = (Arc::downgrade(models), admission.clone());
    move || {
        let models = models.upgrade()?;
        let of_kind = |model: &Arc<ServedModel>, kind: PeerKind| {
            let (alive, resting) = model.counts(kind);
            (model.name().to_owned(), kind.name(), alive, resting)
        };
        let kinds = [PeerKind::Drafter, PeerKind::Verifier];
        let peers = models
            .iter()
            .flat_map(|model| kinds.map(|kind| of_kind(model, kind)));
        Some(Gauges {
            running: admission.running(),
            max_requests: admission.max_requests(),
            peers: peers.collect(),
        })
    }
}

/// Calls `on_first` when a verifier of any model has sent its tokenizer: one model's outage must not keep the
/// others from being served. Completes when those of all models have.
async fn find_verifiers(models: &Models, on_first: impl AsyncFnOnce()) {
    let mut searches: JoinSet<()> = models.iter().cloned().map(find_verifier).collect();
    // None is aborted one by one: an error is a panic.
    if let Some(Err(panicked)) = searches.join_next().await {
        std::panic::resume_unwind(panicked.into_panic());
    }
    on_first().await;
    searches.join_all().await;
}

async fn find_verifier(model: Arc<ServedModel>) {
    let mut told = String::new();
    while let Err(error) = model.target(&[0; 16]).await {
        let reason = error.details();
        if reason != told {
            tracing::info!(
                model = model.name(),
                error = reason,
                "waiting for a verifier"
            );
            told = reason;
        }
        tokio::time::sleep(SEARCH_INTERVAL).await;
    }
}
