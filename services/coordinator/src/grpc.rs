//! The gRPC front.

use std::sync::Arc;
use std::time::Duration;

use server::auth::Client;
use server::health::Health;
use server::process::Process;
use server::trace;
use speculation::session::Plan;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tracing::Instrument;
use wire::status::{BadField, PeerFailure, overloaded, try_again};
use wire::v1::{self, coordinator_server};

use crate::admission::Admission;
use crate::config::CoordinatorConfig;
use crate::deadline;
use crate::driver::{Answer, Begun, Driver};
use crate::error::PeerError;
use crate::listing;
use crate::observe::Observer;
use crate::peers::{Group, Groups, Kind};
use crate::request::CheckedRequest;
use crate::request::limits::check_names;

/// Parts of an answer buffered for a slow client before its request is held up.
pub(crate) const ANSWER_BUFFER: usize = 16;

/// How long a client should wait whose request a stopping coordinator cannot take, or finish.
pub(crate) const RESTART_RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a client reads.
type AnswerStream = ReceiverStream<Answer>;

/// What requests share.
pub(crate) struct Shared {
    pub(crate) groups: Groups,
    pub(crate) admission: Admission,
    pub(crate) config: CoordinatorConfig,
    pub(crate) health: Health,
    pub(crate) process: Process,
}

/// The gRPC service.
pub(crate) struct Service(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl coordinator_server::Coordinator for Service {
    type GenerateStream = AnswerStream;

    async fn generate(
        &self,
        request: Request<v1::GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        let mut observer = Observer::arrived(&self.0.process, &request);
        match self.0.begin(request, &mut observer).await {
            Ok((begun, parts)) => {
                let (context, lines) = (observer.context(), observer.log_lines());
                let (config, health) = (&self.0.config, self.0.health.clone());
                let driver = Driver::new(begun, config, health, observer);
                tokio::spawn(trace::within(context, driver.run()).instrument(lines));
                Ok(Response::new(parts))
            }
            Err(status) => {
                observer.refused(&status);
                Err(status)
            }
        }
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
    /// Lets a request in and checks it: what its driver needs, and where its answer will come from.
    async fn begin(
        self: &Arc<Self>,
        request: Request<v1::GenerateRequest>,
        observer: &mut Observer,
    ) -> Result<(Begun, AnswerStream), Status> {
        let permit = self.admission.admit()?;
        observer.admitted();
        let deadline = deadline::from_metadata(request.metadata());
        let longest = self.config.request_timeout();
        let patience = deadline.map_or(longest, |deadline| deadline.min(longest));
        let tenant = tenant_of_token(&request);
        let mut request = request.into_inner();
        if let Some(tenant) = tenant {
            request.tenant = tenant;
        }
        let preparing = self.prepare(request, permit);
        let late = |_| Status::deadline_exceeded("the deadline passed before the request began");
        let prepared = tokio::select! {
            biased;
            () = self.health.last_call() => return Err(stopping()),
            prepared = tokio::time::timeout(patience, preparing) => prepared,
        };
        let (mut request, permit) = prepared.map_err(late)??;
        request.timeout = request.timeout.min(patience);
        let (answers, parts) = mpsc::channel(ANSWER_BUFFER);
        // The end can always be told, however slowly the client reads.
        let end = answers.clone().try_reserve_owned();
        let begun = Begun {
            request,
            id: random_id()?,
            answers,
            end: end.map_err(|_| Status::internal("no room for the answer"))?,
            permit,
        };
        observer.prepared(&begun.request, begun.request_id());
        Ok((begun, ReceiverStream::new(parts)))
    }

    /// Finds the model asked for and checks the request against it. The permit goes along, so that
    /// what is admitted is bounded even if the client leaves meanwhile.
    async fn prepare(
        self: &Arc<Self>,
        request: v1::GenerateRequest,
        permit: OwnedSemaphorePermit,
    ) -> Result<(CheckedRequest, OwnedSemaphorePermit), Status> {
        check_names(&request)?;
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

fn stopping() -> Status {
    try_again("the coordinator is shutting down", RESTART_RETRY_AFTER)
}

/// The tenant that the client's token stands for.
fn tenant_of_token<T>(request: &Request<T>) -> Option<String> {
    let client = request.extensions().get::<Client>()?;
    client.tenant.as_deref().map(str::to_owned)
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

/// A name for a session that nobody else has or can guess.
fn random_id() -> Result<[u8; 16], Status> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| Status::internal(format!("no randomness: {error}")))?;
    Ok(id)
}
