//! The gRPC front.

use std::sync::Arc;
use std::time::Instant;

use speculation::session::Plan;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use wire::status::{BadField, PeerFailure, overloaded};
use wire::v1::{self, coordinator_server};

use crate::admission::Admission;
use crate::config::CoordinatorConfig;
use crate::deadline;
use crate::driver::Driver;
use crate::error::PeerError;
use crate::listing;
use crate::peers::{Group, Groups, Kind};
use crate::request::CheckedRequest;

/// Parts of an answer buffered for a slow client before its request is held up.
const ANSWER_BUFFER: usize = 16;

/// What requests share.
pub(crate) struct Shared {
    pub(crate) groups: Groups,
    pub(crate) admission: Admission,
    pub(crate) config: CoordinatorConfig,
}

/// The gRPC service.
pub(crate) struct Service(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl coordinator_server::Coordinator for Service {
    type GenerateStream = ReceiverStream<Result<v1::GenerateResponse, Status>>;

    async fn generate(
        &self,
        request: Request<v1::GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        let began = Instant::now();
        let shared = &self.0;
        let permit = shared.admission.admit()?;
        let deadline = deadline::from_metadata(request.metadata());
        let longest = shared.config.request_timeout();
        let patience = deadline.map_or(longest, |deadline| deadline.min(longest));
        let preparing = shared.prepare(request.into_inner(), permit);
        let late = |_| Status::deadline_exceeded("the deadline passed before the request began");
        let (mut checked, permit) = tokio::time::timeout(patience, preparing)
            .await
            .map_err(late)??;
        checked.timeout = checked.timeout.min(patience);
        let (answers, stream) = mpsc::channel(ANSWER_BUFFER);
        let driver = Driver::new(checked, &shared.config, began, answers, permit)?;
        tokio::spawn(driver.run());
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn list_models(
        &self,
        _request: Request<v1::ListModelsRequest>,
    ) -> Result<Response<v1::ListModelsResponse>, Status> {
        let mut models = Vec::new();
        for group in self.0.groups.iter() {
            models.push(v1::ServedModel {
                name: group.name().to_owned(),
                verifier: describe(group, Kind::Verifier).await,
                drafter: describe(group, Kind::Drafter).await,
            });
        }
        Ok(Response::new(v1::ListModelsResponse { models }))
    }

    async fn list_methods(
        &self,
        _request: Request<v1::ListMethodsRequest>,
    ) -> Result<Response<v1::ListMethodsResponse>, Status> {
        Ok(Response::new(listing::methods(self.0.config.lossless_only)))
    }
}

impl Shared {
    /// Finds the model asked for and checks the request against it. The permit goes along, so that
    /// what is admitted is bounded even if the client leaves meanwhile.
    async fn prepare(
        self: &Arc<Self>,
        request: v1::GenerateRequest,
        permit: OwnedSemaphorePermit,
    ) -> Result<(CheckedRequest, OwnedSemaphorePermit), Status> {
        let group = Arc::clone(self.group(&request.model)?);
        let text = group.text().await.map_err(|error| unavailable(&error))?;
        let shared = Arc::clone(self);
        let check = move || {
            let checked = CheckedRequest::new(request, group, text, &shared.config);
            checked.map(|checked| (checked, permit))
        };
        // Turning a long text into tokens would hold up every stream of an async thread.
        let checked = tokio::task::spawn_blocking(check).await;
        let (checked, permit) = checked.map_err(|error| Status::internal(error.to_string()))??;
        if checked.method.plan != Plan::TargetOnly {
            let group = &checked.group;
            group.check_demand(checked.demand, &checked.text).await?;
        }
        Ok((checked, permit))
    }

    fn group(&self, name: &str) -> Result<&Arc<Group>, Status> {
        self.groups.find(name).ok_or_else(|| {
            let problem = format!(
                "'{name}' is not served, expected one of {}",
                self.groups.names().join(", ")
            );
            BadField::new("model", problem).into()
        })
    }
}

fn unavailable(error: &PeerError) -> Status {
    let message = format!("verifier: {error}");
    match error.failure() {
        PeerFailure::Overloaded { retry_after } => overloaded(message, retry_after),
        _ => Status::unavailable(message),
    }
}

/// A peer's description; none if it cannot be reached.
async fn describe(group: &Group, kind: Kind) -> Option<v1::PeerDescription> {
    let text = group.text().await.ok()?;
    let endpoint = group.pick(kind, &[0; 16], None).await.ok()?;
    let description = group.described(&endpoint, kind, &text).await.ok()?;
    Some((*description).clone())
}
