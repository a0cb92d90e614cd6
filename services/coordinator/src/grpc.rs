//! The gRPC front.

use std::sync::Arc;

use speculation::methods::METHODS;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use wire::status::{BadField, PeerFailure, overloaded};
use wire::v1::{self, coordinator_server};

use crate::admission::Admission;
use crate::config::CoordinatorConfig;
use crate::deadline;
use crate::driver::Driver;
use crate::error::PeerError;
use crate::peers::{Group, Groups};
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
        let shared = &self.0;
        let permit = shared.admission.admit()?;
        let deadline = deadline::from_metadata(request.metadata());
        let request = request.into_inner();
        let group = shared.group(&request.model)?;
        let text = group.text().await.map_err(|error| unavailable(&error))?;
        let group = Arc::clone(group);
        let checked = {
            let shared = Arc::clone(shared);
            let check = move || CheckedRequest::new(request, group, text, &shared.config);
            // Turning a long text into tokens would hold up every stream of an async thread.
            tokio::task::spawn_blocking(check).await
        };
        let mut checked = checked.map_err(|error| Status::internal(error.to_string()))??;
        checked.timeout = deadline.unwrap_or(checked.timeout).min(checked.timeout);
        let (answers, stream) = mpsc::channel(ANSWER_BUFFER);
        let driver = Driver::new(checked, &shared.config, random_id()?, answers, permit);
        tokio::spawn(driver.run());
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn list_models(
        &self,
        _request: Request<v1::ListModelsRequest>,
    ) -> Result<Response<v1::ListModelsResponse>, Status> {
        let mut models = Vec::new();
        for group in self.0.groups.iter() {
            // A peer that cannot be reached is simply not described.
            let describe = |picked: crate::peers::Picked| (*picked.1).clone();
            models.push(v1::ServedModel {
                name: group.name().to_owned(),
                verifier: group.verifier(&[0; 16]).await.ok().map(describe),
                drafter: group.drafter(&[0; 16]).await.ok().map(describe),
            });
        }
        Ok(Response::new(v1::ListModelsResponse { models }))
    }

    async fn list_methods(
        &self,
        _request: Request<v1::ListMethodsRequest>,
    ) -> Result<Response<v1::ListMethodsResponse>, Status> {
        let methods = METHODS.iter().map(|method| v1::MethodDescription {
            name: method.name.to_owned(),
            aliases: method
                .aliases
                .iter()
                .map(|&alias| alias.to_owned())
                .collect(),
            summary: method.summary.to_owned(),
            lossless: method.lossless,
            reproducible: method.reproducible,
            source: method.source.to_owned(),
        });
        Ok(Response::new(v1::ListMethodsResponse {
            methods: methods.collect(),
        }))
    }
}

impl Shared {
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

/// A name for a session that nobody else has or can guess.
fn random_id() -> Result<[u8; 16], Status> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| Status::internal(format!("no randomness: {error}")))?;
    Ok(id)
}
