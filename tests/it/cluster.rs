//! Services on loopback ports that can be killed like processes.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use coordinator::{Coordinator, CoordinatorConfig, ModelGroup};
use drafter::{Drafter, DrafterConfig, Loaded};
use model::source::{ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat, embedded};
use server::process::Process;
use speculation::ports::LanguageModel;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use verifier::{Verifier, VerifierConfig};
use wire::v1::coordinator_client::CoordinatorClient;

/// A running service. Dropping it kills it: its connections break, nothing is drained.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Service {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The target of the embedded pair.
pub(crate) fn target() -> ServedModel<Model> {
    load(&embedded::target().expect("embedded"), "target")
}

/// The draft model of the embedded pair.
pub(crate) fn draft() -> ServedModel<Model> {
    load(&embedded::draft().expect("embedded"), "draft")
}

/// A draft model of the same shape and vocabulary that knows nothing.
pub(crate) fn random_draft() -> ServedModel<Model> {
    static CHECKPOINT: OnceLock<Checkpoint> = OnceLock::new();
    let checkpoint = CHECKPOINT.get_or_init(|| {
        let draft = embedded::draft().expect("embedded");
        let random = Checkpoint::random(draft.config().clone(), 7).expect("random weights");
        random.with_tokenizer(draft.tokenizer_json().expect("a tokenizer").to_vec())
    });
    load(checkpoint, "random")
}

/// A draft model of the same vocabulary that knows nothing, and holds `context_len` tokens.
pub(crate) fn short_draft(context_len: usize) -> ServedModel<Model> {
    let draft = embedded::draft().expect("embedded");
    let config = ModelConfig {
        context_len,
        ..draft.config().clone()
    };
    let random = Checkpoint::random(config, 7).expect("random weights");
    let tokenizer = draft.tokenizer_json().expect("a tokenizer").to_vec();
    load(&random.with_tokenizer(tokenizer), "short")
}

fn load(checkpoint: &Checkpoint, name: &str) -> ServedModel<Model> {
    serve(checkpoint, WeightFormat::Q8_0, name.to_owned(), name).expect("a model")
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Starts a drafter, and a look into it.
pub(crate) async fn drafter(model: ServedModel<Model>) -> (Service, Arc<Drafter>) {
    drafter_with(model, |_| {}).await
}

/// Starts a drafter with a configuration of its own.
pub(crate) async fn drafter_with(
    model: ServedModel<Model>,
    configure: impl FnOnce(&mut DrafterConfig),
) -> (Service, Arc<Drafter>) {
    let mut config = DrafterConfig::default();
    configure(&mut config);
    let loaded = Loaded::beside(model, &config).expect("a configuration in order");
    drafter_of(loaded, config).await
}

/// Starts a drafter of what is loaded.
pub(crate) async fn drafter_of(loaded: Loaded, config: DrafterConfig) -> (Service, Arc<Drafter>) {
    drafter_in(Process::default(), loaded, config).await
}

/// The same in a process that is watched.
pub(crate) async fn drafter_in(
    process: Process,
    loaded: Loaded,
    config: DrafterConfig,
) -> (Service, Arc<Drafter>) {
    let (listener, address) = listener().await;
    let drafter = drafter::start(loaded, &config, process).expect("a drafter");
    let monitor = Arc::clone(&drafter);
    let task = tokio::spawn(async move {
        drafter
            .serve(listener, std::future::pending())
            .await
            .expect("served");
    });
    (Service { address, task }, monitor)
}

/// Starts a verifier, and a look into it.
pub(crate) async fn verifier(model: ServedModel<Model>) -> (Service, Arc<Verifier>) {
    verifier_with(model, |_| {}).await
}

/// Starts a verifier with a configuration of its own.
pub(crate) async fn verifier_with(
    model: ServedModel<Model>,
    configure: impl FnOnce(&mut VerifierConfig),
) -> (Service, Arc<Verifier>) {
    let mut config = VerifierConfig::default();
    configure(&mut config);
    verifier_in(Process::default(), model, config).await
}

/// The same in a process that is watched.
pub(crate) async fn verifier_in<M>(
    process: Process,
    model: ServedModel<M>,
    config: VerifierConfig,
) -> (Service, Arc<Verifier>)
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    let (listener, address) = listener().await;
    let verifier = verifier::start(model, &config, process).expect("a verifier");
    let monitor = Arc::clone(&verifier);
    let task = tokio::spawn(async move {
        verifier
            .serve(listener, std::future::pending())
            .await
            .expect("served");
    });
    (Service { address, task }, monitor)
}

/// A coordinator's configuration for peers at these URLs, with short time limits.
pub(crate) fn config(drafters: &[String], verifiers: &[String]) -> CoordinatorConfig {
    CoordinatorConfig {
        models: vec![ModelGroup {
            name: "default".to_owned(),
            drafters: drafters.to_vec(),
            verifiers: verifiers.to_vec(),
        }],
        round_timeout_ms: 5_000.try_into().expect("not zero"),
        verifier_retries: 2,
        ..CoordinatorConfig::default()
    }
}

/// Starts a coordinator.
pub(crate) async fn coordinator(config: CoordinatorConfig) -> Service {
    coordinator_in(Process::default(), config).await
}

/// The same in a process that is watched.
pub(crate) async fn coordinator_in(process: Process, config: CoordinatorConfig) -> Service {
    let (listener, address) = listener().await;
    let coordinator = Coordinator::new(config, process).expect("a coordinator");
    let task = tokio::spawn(async move {
        coordinator
            .serve(listener, std::future::pending())
            .await
            .expect("served");
    });
    Service { address, task }
}

/// One of each on the embedded pair.
pub(crate) struct Cluster {
    pub(crate) drafter: Service,
    pub(crate) verifier: Service,
    pub(crate) coordinator: Service,
    pub(crate) draft_monitor: Arc<Drafter>,
    pub(crate) target_monitor: Arc<Verifier>,
}

impl Cluster {
    pub(crate) async fn start(draft: ServedModel<Model>) -> Self {
        let (drafter, draft_monitor) = drafter(draft).await;
        let (verifier, target_monitor) = verifier(target()).await;
        let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
        Self {
            drafter,
            verifier,
            coordinator,
            draft_monitor,
            target_monitor,
        }
    }
}

/// A client of the coordinator.
pub(crate) fn client(coordinator: &Service) -> CoordinatorClient<Channel> {
    let channel = Channel::from_shared(coordinator.url()).expect("a URL");
    CoordinatorClient::new(channel.connect_lazy())
}

/// Longer than anything takes that happens at all, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `holds`, or fails with `what` after [`PATIENCE`].
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let limit = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < limit, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A peer that accepts connections, as long as the listener lives, and never says a word; its address and URL.
pub(crate) async fn silent() -> (TcpListener, SocketAddr, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address, format!("http://{address}"))
}
