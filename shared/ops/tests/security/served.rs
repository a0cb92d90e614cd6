//! A service of nothing but health and reflection, and its clients.

use std::net::SocketAddr;

use net::Credentials;
use net::auth::Auth;
use net::channel::{ChannelConfig, PeerChannel, Trust, connect, connect_to, parse};
use net::listen::ServerConfig;
use net::tls::{Tls, TlsConfig};
use ops::health::Health;
use ops::lifecycle::serve;
use ops::process::Process;
use ops::reflection;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::service::Routes;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

pub(crate) const SERVICE: &str = "grpc.health.v1.Health";

/// A running service. Dropping it kills it.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) health: Health,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(process: Process) -> Self {
        Self::start_with(process, ServerConfig::default()).await
    }

    pub(crate) async fn start_with(process: Process, config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let health = Health::new(SERVICE, &process);
        health.ready();
        let descriptors = (tonic_health::pb::FILE_DESCRIPTOR_SET, &[][..]);
        let routes = reflection::add_to(Routes::default(), descriptors, SERVICE).unwrap();
        let task = tokio::spawn({
            let health = health.clone();
            async move {
                let forever = std::future::pending();
                let served = serve(
                    routes,
                    listener,
                    &config,
                    &process,
                    &health,
                    forever,
                    || true,
                );
                served.await.unwrap();
            }
        });
        Self {
            address,
            health,
            task,
        }
    }

    /// The URL of this service under a name that leads to this machine.
    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}", self.address.port())
    }

    /// A client of it under `name`, wherever that leads.
    pub(crate) fn client_of(&self, name: &str, process: &Process) -> HealthClient<PeerChannel> {
        let url = format!("https://{name}:{}", self.address.port());
        let uri = parse(&url, Trust::of(&process.credentials)).unwrap();
        let config = ChannelConfig::default();
        HealthClient::new(connect_to(uri, Some(self.address), &config, &process.credentials).0)
    }

    /// Asks it for its health.
    pub(crate) async fn check(&self, scheme: &str, process: &Process) -> Result<(), Status> {
        check(&mut client(&self.url(scheme), process)).await
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn client(url: &str, process: &Process) -> HealthClient<PeerChannel> {
    HealthClient::new(connect(url, &ChannelConfig::default(), &process.credentials).unwrap())
}

pub(crate) async fn check(client: &mut HealthClient<PeerChannel>) -> Result<(), Status> {
    let reply = client.check(HealthCheckRequest::default()).await?;
    assert_eq!(reply.into_inner().status(), ServingStatus::Serving);
    Ok(())
}

/// Returns what a status says, with the causes beneath it.
pub(crate) fn reported(status: &Status) -> String {
    let mut text = format!("{:?}: {}", status.code(), status.message());
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// A process with these certificates and tokens.
pub(crate) fn process(tls: &TlsConfig, auth: Auth) -> Process {
    Process {
        credentials: Credentials {
            tls: Tls::load(tls).unwrap(),
            auth,
        },
        ..Process::default()
    }
}

/// A process with these certificates, without tokens.
pub(crate) fn with_tls(tls: &TlsConfig) -> Process {
    process(tls, Auth::default())
}
