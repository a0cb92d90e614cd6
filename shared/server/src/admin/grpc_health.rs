//! `grpc.health.v1` of all services of a process.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::health::{Condition, Services};

/// How often a watched service is looked at.
const INTERVAL: Duration = Duration::from_millis(250);

/// The services by their names, and all of them together by the empty name.
pub(super) struct ProcessHealth(pub(super) Services);

/// The status of `service`; none if the process has no such service.
fn status(services: &Services, service: &str) -> Option<ServingStatus> {
    let is_serving = if service.is_empty() {
        services.are_ready()
    } else {
        let conditions = services.conditions();
        let (_, condition) = conditions.into_iter().find(|(name, _)| *name == service)?;
        condition == Condition::Ready
    };
    Some(if is_serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    })
}

#[tonic::async_trait]
impl Health for ProcessHealth {
    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match status(&self.0, &request.get_ref().service) {
            Some(status) => Ok(Response::new(response(status))),
            None => Err(Status::not_found("no such service in this process")),
        }
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let service = request.into_inner().service;
        let services = self.0.clone();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut told = None;
            let mut ticks = tokio::time::interval(INTERVAL);
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    () = sender.closed() => return,
                }
                let now = status(&services, &service).unwrap_or(ServingStatus::ServiceUnknown);
                if told != Some(now) {
                    told = Some(now);
                    if sender.send(Ok(response(now))).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}
