//! Services on loopback ports that can be killed like processes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coordinator::{Coordinator, CoordinatorConfig, DefaultDraftLen, ModelGroup};
use drafter::{Drafter, DrafterConfig, Loaded};
use model::source::{ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat, embedded};
use ops::process::Process;
use speculation::ports::LanguageModel;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::Channel;
use verifier::{Verifier, VerifierConfig};
use wire::v1::coordinator_client::CoordinatorClient;

use crate::metrics::Scrape;

/// A running service. Dropping it kills it: its connections break, nothing is drained.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    /// The process it believes to be in.
    pub(crate) process: Process,
    /// Tells it to stop, as a signal would.
    pub(crate) stop: CancellationToken,
    task: JoinHandle<Result<(), String>>,
}

impl Service {
    pub(crate) async fn start<F, E>(
        process: Process,
        serve: impl FnOnce(TcpListener, WaitForCancellationFutureOwned) -> F,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: ToString,
    {
        let (listener, address) = listener().await;
        let stop = CancellationToken::new();
        let serving = serve(listener, stop.clone().cancelled_owned());
        let task = async { serving.await.map_err(|error| error.to_string()) };
        Self {
            address,
            process,
            stop,
            task: tokio::spawn(task),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A connection of its own.
    pub(crate) fn channel(&self) -> Channel {
        channel(self.url())
    }

    /// How it ends by itself.
    pub(crate) async fn ends(mut self, limit: Duration) -> Result<(), String> {
        let ended = tokio::time::timeout(limit, &mut self.task).await;
        ended.expect("in time").expect("no panic")
    }

    /// What its process says of itself.
    pub(crate) fn scrape(&self) -> Scrape {
        Scrape::read(&self.process.metrics.encode().expect("text"))
    }

    /// Waits until the coordinator has found that its one drafter does not fit the target.
    pub(crate) async fn meets_misfit(&self) {
        let labels = [
            ("model", "default"),
            ("role", "drafter"),
            ("state", "misfit"),
        ];
        let is_misfit = |scrape: &Scrape| scrape.value("outrider_peers", &labels) == 1.0;
        self.shows("a misfit", is_misfit).await;
    }

    /// Waits until its figures are such.
    pub(crate) async fn shows(&self, what: &str, holds: impl Fn(&Scrape) -> bool) {
        eventually(what, || holds(&self.scrape())).await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection to `url`, once it is used.
pub(crate) fn channel(url: String) -> Channel {
    Channel::from_shared(url).expect("a URL").connect_lazy()
}

/// The target of the embedded pair.
pub(crate) fn target() -> ServedModel<Model> {
    embedded_model("target")
}

/// The draft model of the embedded pair.
pub(crate) fn draft() -> ServedModel<Model> {
    embedded_model("draft")
}

fn embedded_model(role: &str) -> ServedModel<Model> {
    #[cfg(feature = "llama-cpp")]
    if let Some(served) = crate::llama_cpp::suites::model(role) {
        return served;
    }
    load(&embedded::model(role).expect("embedded"), role)
}

/// A draft model of the same vocabulary that knows nothing, of another shape where `change` makes it one.
pub(crate) fn random_draft(change: impl FnOnce(&mut ModelConfig)) -> ServedModel<Model> {
    let draft = embedded::draft().expect("embedded");
    let mut config = draft.config().clone();
    change(&mut config);
    let random = Checkpoint::random(config, 7).expect("random weights");
    let tokenizer = draft.tokenizer_json().expect("a tokenizer").to_vec();
    load(&random.with_tokenizer(tokenizer), "random")
}

/// The model of `checkpoint`, served under `name`.
pub(crate) fn load(checkpoint: &Checkpoint, name: &str) -> ServedModel<Model> {
    serve(checkpoint, WeightFormat::Q8_0, name.to_owned(), name).expect("a model")
}

pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
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
    #[cfg(feature = "llama-cpp")]
    crate::llama_cpp::suites::bound("draft", &mut config.engine);
    configure(&mut config);
    let loaded = Loaded::beside(model, &config).expect("a configuration in order");
    drafter_of(loaded, config).await
}

/// Starts a drafter of what is loaded.
pub(crate) async fn drafter_of<M>(
    loaded: Loaded<M>,
    config: DrafterConfig,
) -> (Service, Arc<Drafter>)
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    drafter_in(Process::default(), loaded, config).await
}

/// The same in a process that is watched.
pub(crate) async fn drafter_in<M>(
    process: Process,
    loaded: Loaded<M>,
    config: DrafterConfig,
) -> (Service, Arc<Drafter>)
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    let drafter = drafter::start(loaded, &config, process.clone()).expect("a drafter");
    let monitor = Arc::clone(&drafter);
    let service = Service::start(process, |listener, stop| drafter.serve(listener, stop)).await;
    (service, monitor)
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
    #[cfg(feature = "llama-cpp")]
    crate::llama_cpp::suites::bound("target", &mut config.engine);
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
    let verifier = verifier::start(model, &config, process.clone()).expect("a verifier");
    let monitor = Arc::clone(&verifier);
    let service = Service::start(process, |listener, stop| verifier.serve(listener, stop)).await;
    (service, monitor)
}

/// A drafter and a verifier of the embedded pair.
pub(crate) async fn pair() -> (Service, Service) {
    (drafter(draft()).await.0, verifier(target()).await.0)
}

/// A coordinator's configuration for peers at these URLs, with short time limits.
pub(crate) fn config(drafters: &[String], verifiers: &[String]) -> CoordinatorConfig {
    CoordinatorConfig {
        models: vec![ModelGroup {
            name: "default".to_owned(),
            drafters: drafters.to_vec(),
            verifiers: verifiers.to_vec(),
            ..ModelGroup::default()
        }],
        round_timeout_ms: 5_000.try_into().expect("not zero"),
        verifier_retries: 2,
        // A fixed length, because `auto` depends on the speed of the machine that runs the tests.
        draft_len: DefaultDraftLen::Fixed(4.try_into().expect("not zero")),
        ..CoordinatorConfig::default()
    }
}

/// Starts a coordinator.
pub(crate) async fn coordinator(config: CoordinatorConfig) -> Service {
    coordinator_in(Process::default(), config).await
}

/// The same in a process that is watched.
pub(crate) async fn coordinator_in(process: Process, config: CoordinatorConfig) -> Service {
    let coordinator = Coordinator::new(config, process.clone()).expect("a coordinator");
    Service::start(process, |listener, stop| coordinator.serve(listener, stop)).await
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
        Self::of(draft, target()).await
    }

    pub(crate) async fn of(draft: ServedModel<Model>, target: ServedModel<Model>) -> Self {
        let (drafter, draft_monitor) = drafter(draft).await;
        let (verifier, target_monitor) = verifier(target).await;
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
    CoordinatorClient::new(coordinator.channel())
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
    let (listener, address) = listener().await;
    (listener, address, format!("http://{address}"))
}
