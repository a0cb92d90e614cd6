//! `grpc.health.v1`: of a service at its own port, and of all services of a process at its admin port.

use std::pin::Pin;

use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::process::{ServiceConditions, are_ready};

/// The services by their names, and all of them together by the empty name.
#[derive(Clone, Debug)]
pub(crate) struct HealthOf {
    pub(crate) services: ServiceConditions,
    /// Where the one stands that is told of alone.
    pub(crate) only: Option<usize>,
}

impl HealthOf {
    /// The status of `service`; none if there is no such service.
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
impl Health for HealthOf {
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
