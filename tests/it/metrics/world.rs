//! Services with admin ports, in processes of their own.

use std::time::Duration;

use coordinator::CoordinatorConfig;
use drafter::{DrafterConfig, Loaded};
use model::Model;
use model::source::ServedModel;
use server::admin::{self, Admin};
use server::process::Process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use verifier::VerifierConfig;

use super::openmetrics::Scrape;
use crate::cluster::{
    PATIENCE, Service, config, coordinator_in, draft, drafter_in, target, verifier_in,
};

/// A service in a process of its own, with an admin port.
pub(super) struct Watched {
    pub(super) service: Service,
    pub(super) admin: Admin,
}

/// A process with its admin port.
pub(super) async fn process() -> (Process, Admin) {
    let process = Process::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let admin = admin::serve(listener, &process).expect("an admin port");
    (process, admin)
}

/// A drafter, a verifier and their coordinator.
pub(super) struct Cluster {
    pub(super) drafter: Watched,
    pub(super) verifier: Watched,
    pub(super) coordinator: Watched,
}

impl Watched {
    pub(super) async fn drafter(model: ServedModel<Model>) -> Self {
        let (process, admin) = process().await;
        let config = DrafterConfig::default();
        let loaded = Loaded::beside(model, &config).expect("a configuration in order");
        let (service, _) = drafter_in(process, loaded, config).await;
        Self { service, admin }
    }

    pub(super) async fn verifier(model: ServedModel<Model>) -> Self {
        let (process, admin) = process().await;
        let (service, _) = verifier_in(process, model, VerifierConfig::default()).await;
        Self { service, admin }
    }

    pub(super) async fn coordinator(config: CoordinatorConfig) -> Self {
        let (process, admin) = process().await;
        let service = coordinator_in(process, config).await;
        Self { service, admin }
    }

    /// An answer of the admin port: its status and body.
    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin.address())
            .await
            .expect("there");
        let request = format!("GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).expect("a status");
        (status.parse().expect("a number"), body.to_owned())
    }

    pub(super) async fn scrape(&self) -> Scrape {
        let (status, text) = self.get("/metrics").await;
        assert_eq!(status, 200);
        Scrape::read(&text)
    }

    /// Scrapes until `holds`, or fails with `what` after [`PATIENCE`].
    pub(super) async fn eventually(&self, what: &str, holds: impl Fn(&Scrape) -> bool) {
        let limit = Instant::now() + PATIENCE;
        while Instant::now() < limit {
            if holds(&self.scrape().await) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("not within {PATIENCE:?}: {what}");
    }
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let drafter = Watched::drafter(draft()).await;
        let verifier = Watched::verifier(target()).await;
        let urls = [drafter.service.url(), verifier.service.url()];
        let coordinator = Watched::coordinator(config(&urls[..1], &urls[1..])).await;
        Self {
            drafter,
            verifier,
            coordinator,
        }
    }
}
