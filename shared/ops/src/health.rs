//! Readiness: loading, serving, draining; and `grpc.health.v1` of a service at its own port, and of all services of a
//! process at its admin port.

use std::pin::Pin;

use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{self, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::metrics::names;
use crate::process::{Condition, Process, ServiceConditions, are_ready};

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

    /// Reports NOT_SERVING until [`ready`](Self::ready) is called again, because a service that this one needs is
    /// missing. Does nothing once draining.
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

/// The services by their names, and all of them together by the empty name.
#[derive(Clone, Debug)]
pub(crate) struct HealthOf {
    pub(crate) services: ServiceConditions,
    /// Where the one stands that is told of alone.
    pub(crate) only: Option<usize>,
}

impl HealthOf {
    /// Returns the status of `service`; none if there is no such service.
    fn status(&self, service: &str) -> Option<ServingStatus> {
        let all = self.services.conditions();
        let reported = self.only.map_or(&*all, |index| &all[index..=index]);
        let named = reported
            .iter()
            .filter(|(name, _)| service.is_empty() || *name == service);
        let named: Vec<_> = named.copied().collect();
        let status = if are_ready(&named) {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        (service.is_empty() || !named.is_empty()).then_some(status)
    }
}

#[tonic::async_trait]
impl health_server::Health for HealthOf {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match self.status(&request.get_ref().service) {
            Some(status) => Ok(Response::new(response(status))),
            None => Err(Status::not_found("no such service in this process")),
        }
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (health, service) = (self.clone(), request.into_inner().service);
        let mut reported = None;
        let statuses = WatchStream::new(self.services.watch()).filter_map(move |_| {
            let now = health
                .status(&service)
                .unwrap_or(ServingStatus::ServiceUnknown);
            (reported.replace(now) != Some(now)).then(|| Ok(response(now)))
        });
        Ok(Response::new(Box::pin(statuses)))
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}
