//! Services with certificates and tokens, and clients that have others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drafter::{DrafterConfig, Loaded};
use net::Credentials;
use net::auth::{Auth, AuthConfig};
use net::channel::{ChannelConfig, PeerChannel, connect};
use net::tls::{Tls, TlsConfig, TlsMode};
use ops::process::Process;
use tempfile::TempDir;
use tonic::Status;
use verifier::VerifierConfig;
use wire::v1::GenerateRequest;
use wire::v1::coordinator_client::CoordinatorClient;

use super::authority::{Authority, write};
use crate::client::{Answer, collect};
use crate::cluster::{Service, config, coordinator_in, draft, drafter_in, target, verifier_in};

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

impl World {
    pub(crate) fn new() -> Self {
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
            credentials: Credentials {
                tls: Tls::load(&self.tls).expect("certificates"),
                auth,
            },
            ..Process::default()
        }
    }

    pub(crate) async fn drafter(&self, process: Process) -> Service {
        let config = DrafterConfig::default();
        let loaded = Loaded::beside(draft(), &config).expect("a configuration in order");
        drafter_in(process, loaded, config).await.0
    }

    pub(crate) async fn verifier(
        &self,
        process: Process,
        configure: impl FnOnce(&mut VerifierConfig),
    ) -> (Service, Arc<verifier::Verifier>) {
        let mut config = VerifierConfig::default();
        configure(&mut config);
        verifier_in(process, target(), config).await
    }

    /// A drafter, a verifier and their coordinator.
    pub(crate) async fn services(&self) -> [Service; 3] {
        let drafter = self.drafter(self.of_peer()).await;
        let (verifier, _) = self.verifier(self.of_peer(), |_| {}).await;
        let process = self.of_coordinator();
        let coordinator = self.coordinator(&[&drafter], &[&verifier], process).await;
        [drafter, verifier, coordinator]
    }

    pub(crate) async fn coordinator(
        &self,
        drafters: &[&Service],
        verifiers: &[&Service],
        process: Process,
    ) -> Service {
        let urls = |services: &[&Service]| -> Vec<String> {
            services.iter().map(|service| url(service)).collect()
        };
        coordinator_in(process, config(&urls(drafters), &urls(verifiers))).await
    }
}

/// The URL of a service under the name in its certificate.
fn url(service: &Service) -> String {
    format!("https://localhost:{}", service.address.port())
}

/// A channel as commands make it.
pub(crate) fn channel(service: &Service, process: &Process) -> PeerChannel {
    connect(
        &url(service),
        &ChannelConfig::default(),
        &process.credentials,
    )
    .expect("a URL")
}

/// Generates to the end.
pub(crate) async fn try_generate(
    coordinator: &Service,
    process: &Process,
    request: GenerateRequest,
) -> Result<Answer, Status> {
    let mut client = CoordinatorClient::new(channel(coordinator, process));
    let parts = client.generate(request).await?.into_inner();
    Ok(collect(parts, |_| {}).await)
}
