//! Services with certificates and tokens, and clients that have others.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use coordinator::{Coordinator, CoordinatorConfig};
use drafter::{Drafter, DrafterConfig, Loaded};
use server::auth::{Auth, AuthConfig};
use server::channel::{ChannelConfig, PeerChannel, connect};
use server::process::Process;
use server::tls::{Tls, TlsConfig, TlsMode, install_provider};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::Status;
use verifier::{Verifier, VerifierConfig};
use wire::v1::GenerateRequest;
use wire::v1::coordinator_client::CoordinatorClient;

use super::authority::{Authority, write};
use crate::client::{Answer, collect};
use crate::cluster::{config, draft, target};

/// What peers show each other.
const PEER_TOKEN: &str = "peers-0123456789abcdef";
/// Two tenants' tokens, and one of nobody in particular.
pub(crate) const ACME: &str = "acme-0123456789abcdef";
pub(crate) const BOLT: &str = "bolt-0123456789abcdef";
pub(crate) const ANYONE: &str = "anyone-0123456789abcdef";

/// Certificates and tokens of one deployment.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) tls: TlsConfig,
    pub(crate) auth: AuthConfig,
}

/// A running service. Dropping it kills it.
pub(crate) struct Secured {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Secured {
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}

impl World {
    pub(crate) fn new() -> Self {
        install_provider();
        let folder = tempfile::tempdir().expect("a folder");
        let ours = Authority::new("ours");
        let (cert_file, key_file) = ours.issue(folder.path(), "service", &["localhost"]);
        let tls = TlsConfig {
            mode: TlsMode::Mutual,
            cert_file,
            key_file,
            ca_file: ours.write(folder.path(), "ca.pem"),
            ..TlsConfig::default()
        };
        let clients = format!("{ANYONE}\nacme {ACME}\nbolt {BOLT}\n");
        let auth = AuthConfig {
            client_tokens_file: write(folder.path(), "clients", &clients),
            peer_token_file: write(folder.path(), "peers", PEER_TOKEN),
            ..AuthConfig::default()
        };
        Self { folder, tls, auth }
    }

    /// A file of one token.
    pub(crate) fn token(&self, token: &str) -> PathBuf {
        let path: &Path = self.folder.path();
        write(path, &format!("token-{token}"), token)
    }

    pub(crate) fn of_peer(&self) -> Process {
        self.process(Auth::of_peer(&self.auth).expect("tokens"))
    }

    pub(crate) fn of_coordinator(&self) -> Process {
        self.process(Auth::of_coordinator(&self.auth).expect("tokens"))
    }

    /// A client with a certificate of its own that shows `token`.
    pub(crate) fn of_client(&self, token: &str) -> Process {
        let config = AuthConfig {
            token_file: self.token(token),
            reload_seconds: 0,
            ..AuthConfig::default()
        };
        self.process(Auth::of_client(&config).expect("a token"))
    }

    fn process(&self, auth: Auth) -> Process {
        Process {
            tls: Tls::load(&self.tls).expect("certificates"),
            auth,
            ..Process::default()
        }
    }

    pub(crate) async fn drafter(&self, process: Process) -> Secured {
        let config = DrafterConfig::default();
        let loaded = Loaded::beside(draft(), &config).expect("a configuration in order");
        let drafter = Drafter::start(loaded, config, process).await;
        let drafter = drafter.expect("a drafter");
        let (listener, address) = listener().await;
        let serving = async move { drafter.serve(listener, std::future::pending()).await };
        let task = tokio::spawn(async move { serving.await.expect("served") });
        Secured { address, task }
    }

    pub(crate) async fn verifier(
        &self,
        process: Process,
        configure: impl FnOnce(&mut VerifierConfig),
    ) -> (Secured, verifier::Monitor) {
        let mut config = VerifierConfig::default();
        configure(&mut config);
        let verifier = Verifier::start(target(), config, process).await;
        let verifier = verifier.expect("a verifier");
        let monitor = verifier.monitor();
        let (listener, address) = listener().await;
        let serving = async move { verifier.serve(listener, std::future::pending()).await };
        let task = tokio::spawn(async move { serving.await.expect("served") });
        (Secured { address, task }, monitor)
    }

    pub(crate) async fn coordinator(
        &self,
        drafters: &[&Secured],
        verifiers: &[&Secured],
        process: Process,
    ) -> Secured {
        let urls = |services: &[&Secured]| -> Vec<String> {
            services.iter().map(|service| service.url()).collect()
        };
        let config: CoordinatorConfig = config(&urls(drafters), &urls(verifiers));
        let coordinator = Coordinator::new(config, process).await;
        let coordinator = coordinator.expect("a coordinator");
        let (listener, address) = listener().await;
        let serving = async move { coordinator.serve(listener, std::future::pending()).await };
        let task = tokio::spawn(async move { serving.await.expect("served") });
        Secured { address, task }
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// A channel as commands make it.
pub(crate) fn channel(service: &Secured, process: &Process) -> PeerChannel {
    connect(&service.url(), &ChannelConfig::default(), process).expect("a URL")
}

/// Generates to the end.
pub(crate) async fn try_generate(
    coordinator: &Secured,
    process: &Process,
    request: GenerateRequest,
) -> Result<Answer, Status> {
    let mut client = CoordinatorClient::new(channel(coordinator, process));
    let parts = client.generate(request).await?.into_inner();
    Ok(collect(parts, |_| {}).await)
}
