//! Readiness: loading, serving, draining.

pub(crate) mod services;

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::metrics::names;
use crate::process::Process;
use services::State;
pub use services::{Condition, Services};

/// The state of a service as `grpc.health.v1` reports it on the service's own port, for the service named and
/// for the empty name. What its process reports of all services in it, [`Services`] holds.
///
/// NOT_SERVING until [`ready`](Self::ready), and again from [`drain`](Self::drain) on. It says
/// nothing of the health of peers: a verifier is not unready because a drafter is away.
///
/// A service ends in two steps: it drains, going on with what it has while its clients look for
/// another replica; and when its grace is nearly over, the [last call](Self::last_call) asks what is
/// left to end in order before it is cut.
#[derive(Debug, Clone)]
pub struct Health {
    reporter: HealthReporter,
    service: &'static str,
    state: Arc<State>,
    draining: CancellationToken,
    last_call: CancellationToken,
}

impl Health {
    /// Starts as NOT_SERVING, for the gRPC service of that full name (`outrider.v1.Verifier`) in `process`.
    pub async fn new(service: &'static str, process: &Process) -> Self {
        let state = process.services.add(service);
        let looked_at = Arc::downgrade(&state);
        process.metrics.sample(move |samples| {
            let is_ready = looked_at.upgrade()?.condition() == Condition::Ready;
            samples.add(&names::READY, &[service], f64::from(u8::from(is_ready)));
            Some(())
        });
        let health = Self {
            reporter: HealthReporter::new(),
            service,
            state,
            draining: CancellationToken::new(),
            last_call: CancellationToken::new(),
        };
        health.report(ServingStatus::NotServing).await;
        health
    }

    /// Reports SERVING: models are loaded and warmed up. Does nothing once draining.
    pub async fn ready(&self) {
        if !self.state.ready() {
            return;
        }
        self.report(ServingStatus::Serving).await;
        // A drain may have begun while this was reporting; whichever came first, draining wins.
        if self.state.condition() != Condition::Ready {
            self.report(ServingStatus::NotServing).await;
        }
    }

    /// Reports NOT_SERVING for good, and then completes [`draining`](Self::draining): whoever looks at
    /// readiness is told before the first connection is refused.
    pub async fn drain(&self) {
        self.state.drain();
        self.report(ServingStatus::NotServing).await;
        self.draining.cancel();
    }

    /// Notes that the service can do no more work: its process should be started anew.
    pub fn died(&self) {
        self.state.die();
    }

    /// Completes when draining begins. Streams that are open go on within the grace.
    pub fn draining(&self) -> WaitForCancellationFutureOwned {
        self.draining.clone().cancelled_owned()
    }

    /// Tells whether draining has begun.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Completes when what is still open must end at once, each stream with a word why.
    pub fn last_call(&self) -> WaitForCancellationFutureOwned {
        self.last_call.clone().cancelled_owned()
    }

    /// Completes [`last_call`](Self::last_call).
    pub(crate) fn call_last(&self) {
        self.last_call.cancel();
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
