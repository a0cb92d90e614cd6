//! The service's life: bind, find a verifier, serve, drain.

mod readiness;

use std::num::NonZeroU32;
use std::sync::Arc;

use fleet::Models;
use net::MAX_MESSAGE_BYTES;
use net::channel::Trust;
use net::receiving::Gate;
use ops::health::Health;
use ops::metrics::{Metrics, names};
use ops::process::Process;
use ops::service_error::ServiceError;
use ops::{lifecycle, reflection};
use speculation::session::Peer;
use tokio::net::TcpListener;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use wire::v1::coordinator_server::CoordinatorServer;

use crate::config::{CoordinatorConfig, HttpConfig, wrong};
use crate::front::{Admission, GrpcService, SharedState, Tokenizing, http, reading_places};
use crate::limits::MAX_REQUEST_BYTES;
use crate::observe::Observation;

/// Full name of the gRPC service.
const NAME: &str = "outrider.v1.Coordinator";

/// A coordinator ready to serve.
pub struct Coordinator {
    shared: Arc<SharedState>,
    process: Process,
    /// Where the OpenAI API is served, if it is.
    pub http: Option<TcpListener>,
}

/// Binds the port of the OpenAI API, if there is one. Where nobody chose the address (`is_chosen`), of several
/// coordinators on a machine the first gets it, and the others go on without.
///
/// # Errors
/// [`ServiceError`] naming the address.
pub async fn bind_http(
    config: &HttpConfig,
    is_chosen: bool,
) -> Result<Option<TcpListener>, ServiceError> {
    let what = "port of the OpenAI API (coordinator.http.listen)";
    let bound = config.listen.bind(is_chosen, 1, what).await;
    bound.map_err(|error| {
        let remedy = "several coordinators on a machine need a port each, or \"off\"";
        wrong("http.listen", format!("{error}; {remedy}"))
    })
}

/// Binds and serves until `shutdown` completes; then drains. `is_http_chosen`: see [`bind_http`].
///
/// # Errors
/// [`ServiceError`] naming the setting that is wrong, or why serving ended early.
pub async fn run(
    config: CoordinatorConfig,
    process: Process,
    is_http_chosen: bool,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let listener = config.listen.bind().await?;
    let http = bind_http(&config.http, is_http_chosen).await?;
    let mut coordinator = Coordinator::new(config, process)?;
    coordinator.http = http;
    coordinator.serve(listener, shutdown).await
}

impl Coordinator {
    /// Checks the configuration. No peer need be there yet.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(config: CoordinatorConfig, process: Process) -> Result<Self, ServiceError> {
        if let Some(problem) = config
            .check(Trust::of(&process.credentials))
            .into_iter()
            .next()
        {
            return Err(problem);
        }
        let health = Health::new(NAME, &process);
        let process = Process {
            traces: process.traces.of("coordinator"),
            ..process
        };
        let models = Arc::new(config.connect(&process.credentials)?);
        let admission = Admission::new(
            config.max_requests.get(),
            NonZeroU32::new(config.max_requests_per_client),
            config.max_distribution_bytes.get(),
            config.max_answer_bytes.get(),
        );
        let weak = Arc::downgrade(&models);
        process.warnings.add(move || weak.upgrade()?.misfits());
        let names = models.names();
        let observation = Observation::new(&process, names.into_iter());
        register_gauges(&process.metrics, &models, &admission);
        let (board, looked_at) = (Arc::clone(&observation.board), Arc::downgrade(&models));
        (process.status).add(move || Some(board.told(&*looked_at.upgrade()?)));
        let shared = Arc::new(SharedState {
            models,
            admission,
            tokenizing: Tokenizing::new(),
            config,
            health,
            reading: reading_places(),
            observation,
        });
        Ok(Self {
            shared,
            process,
            http: None,
        })
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
    ) -> Result<(), ServiceError> {
        // Of a message that comes compressed, what it is unpacked to is bounded, too.
        let service = CoordinatorServer::new(GrpcService::new(Arc::clone(&self.shared)))
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let mut services = reflection::add_to(Routes::new(service), wire::DESCRIPTORS, NAME)?;
        // Both ports are one way in: what one receives, the other has no room for.
        let gate = Gate::new(&self.shared.config.server);
        services.gate = Some(gate.clone());
        let serving = lifecycle::serve(
            services,
            listener,
            &self.shared.config.server,
            &self.process,
            &self.shared.health,
            shutdown,
            || true,
        );
        let ready = readiness::watch(&self.shared);
        let http = async {
            if let Some(listener) = self.http {
                serve_http(listener, gate, &self.shared, &self.process).await;
            }
            Ok(())
        };
        // Both are large, and callers hold them by value.
        let (serving, http) = (Box::pin(serving), Box::pin(http));
        let serving = async { tokio::try_join!(serving, http) };
        tokio::select! {
            served = serving => served.map(|_| ()).map_err(Into::into),
            never = ready => match never {},
        }
    }
}

/// Serves the OpenAI API until the coordinator has drained.
async fn serve_http(
    listener: TcpListener,
    gate: Gate,
    shared: &Arc<SharedState>,
    process: &Process,
) {
    let address = listener.local_addr();
    let is_local = address
        .as_ref()
        .is_ok_and(|address| address.ip().is_loopback());
    let front = http::front(shared, process.credentials.auth.guard(), is_local);
    if let Ok(address) = address {
        let page = if shared.config.http.page {
            "at /"
        } else {
            "off"
        };
        tracing::info!(%address, page, "serving the OpenAI API");
    }
    let (tls, config) = (process.credentials.tls.clone(), &shared.config.server);
    let draining = shared.health.draining();
    net::http::serve(front, listener, config, gate, tls, draining).await;
}

/// Tells at every scrape how the coordinator is, for as long as it lives.
fn register_gauges(metrics: &Metrics, models: &Arc<Models>, admission: &Admission) {
    let (models, admission) = (Arc::downgrade(models), admission.clone());
    metrics.sample(move |samples| {
        let models = models.upgrade()?;
        let most = admission.max_requests() as f64;
        samples.add(&names::REQUESTS_RUNNING, &[], admission.running() as f64);
        samples.add(&names::REQUESTS_LIMIT, &[], most);
        for model in models.iter() {
            for kind in Peer::ALL {
                for (state, count) in model.counts(kind) {
                    let labels = [model.name(), kind.name(), state];
                    samples.add(&names::PEERS, &labels, count as f64);
                }
            }
            for (draft_model, gain) in model.gains() {
                let labels = [model.name(), &draft_model];
                samples.add(&names::DRAFT_MODEL_GAIN, &labels, gain);
            }
        }
        Some(())
    });
}
