//! Readiness: loading, serving, draining.

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

/// The state of a process as `grpc.health.v1` reports it, for the service named and for the process
/// as a whole (the empty name).
///
/// NOT_SERVING until [`ready`](Self::ready), and again from [`drain`](Self::drain) on. It says
/// nothing of the health of peers: a verifier is not unready because a drafter is away.
#[derive(Debug, Clone)]
pub struct Health {
    reporter: HealthReporter,
    service: &'static str,
    draining: CancellationToken,
}

impl Health {
    /// Starts as NOT_SERVING, for the gRPC service of that full name (`outrider.v1.Verifier`).
    pub async fn new(service: &'static str) -> Self {
        let health = Self {
            reporter: HealthReporter::new(),
            service,
            draining: CancellationToken::new(),
        };
        health.report(ServingStatus::NotServing).await;
        health
    }

    /// Reports SERVING: models are loaded and warmed up. Does nothing once draining.
    pub async fn ready(&self) {
        if self.is_draining() {
            return;
        }
        self.report(ServingStatus::Serving).await;
        // A drain may have begun while this was reporting; whichever came first, draining wins.
        if self.is_draining() {
            self.report(ServingStatus::NotServing).await;
        }
    }

    /// Reports NOT_SERVING for good, and completes [`draining`](Self::draining).
    pub async fn drain(&self) {
        self.draining.cancel();
        self.report(ServingStatus::NotServing).await;
    }

    /// Completes when draining begins. Streams that are open go on within the grace.
    pub fn draining(&self) -> WaitForCancellationFutureOwned {
        self.draining.clone().cancelled_owned()
    }

    /// Tells whether draining has begun.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(crate) fn add_to(&self, routes: Routes) -> Routes {
        let service = HealthService::from_health_reporter(self.reporter.clone());
        routes.add_service(HealthServer::new(service))
    }

    async fn report(&self, status: ServingStatus) {
        self.reporter.set_service_status("", status).await;
        self.reporter.set_service_status(self.service, status).await;
    }
}
