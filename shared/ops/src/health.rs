//! Readiness: loading, serving, draining.

pub(crate) mod grpc;

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

use crate::metrics::names;
use crate::process::{Condition, Process, ServiceConditions};
use grpc::HealthOf;

/// The state of a service as `grpc.health.v1` reports it on the service's own port, for the service named and
/// for the empty name. What its process reports of all services in it, [`ServiceConditions`] holds.
///
/// NOT_SERVING until [`ready`](Self::ready), and again from [`drain`](Self::drain) on. It says
/// nothing of the health of peers: a verifier is not unready because a drafter is away.
///
/// A service ends in two steps: it drains, going on with what it has while its clients look for
/// another replica; and when its grace is nearly over, the [last call](Self::last_call) asks what is
/// left to end in order before it is cut.
#[derive(Debug, Clone)]
pub struct Health {
    services: ServiceConditions,
    /// Where the service stands among them.
    index: usize,
    draining: CancellationToken,
    last_call: CancellationToken,
}

impl Health {
    /// Starts as NOT_SERVING, for the gRPC service of that full name (`outrider.v1.Verifier`) in `process`.
    pub fn new(service: &'static str, process: &Process) -> Self {
        let (services, index) = (process.services.clone(), process.services.add(service));
        let looked_at = services.clone();
        process.metrics.sample(move |samples| {
            let (_, condition) = looked_at.conditions()[index];
            let is_ready = u8::from(condition == Condition::Ready);
            samples.add(&names::READY, &[service], is_ready.into());
            Some(())
        });
        Self {
            services,
            index,
            draining: CancellationToken::new(),
            last_call: CancellationToken::new(),
        }
    }

    /// Reports SERVING: models are loaded and warmed up. Does nothing once draining.
    pub fn ready(&self) {
        self.go_on(Condition::Ready);
    }

    /// Reports NOT_SERVING until [`ready`](Self::ready) is called again, because a service that this one needs is missing.
    /// Does nothing once draining.
    pub fn wait(&self) {
        self.go_on(Condition::Waiting);
        self.services.wait(self.index);
    }

    /// Reports NOT_SERVING for good, and then completes [`draining`](Self::draining): whoever looks at
    /// readiness is told before the first connection is refused.
    pub fn drain(&self) {
        self.go_on(Condition::Draining);
        self.draining.cancel();
    }

    /// Notes that the service can do no more work: its process should be started anew.
    pub fn died(&self) {
        self.go_on(Condition::Dead);
    }

    fn go_on(&self, condition: Condition) {
        self.services.go_on(self.index, condition);
    }

    /// Tells whether the service is ready for requests.
    pub fn is_ready(&self) -> bool {
        self.services.conditions()[self.index].1 == Condition::Ready
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
        let services = self.services.clone();
        let only = Some(self.index);
        routes.add_service(HealthServer::new(HealthOf { services, only }))
    }
}
