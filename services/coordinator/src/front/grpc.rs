//! The gRPC front.

use std::sync::Arc;
use std::time::Duration;

use fleet::{Beginning, PeerQuery, ServedModel, described};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use net::auth::TokenHolder;
use net::deadline;
use speculation::session::Peer;
use tokio::sync::Semaphore;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};
use wire::status::overloaded;
use wire::v1::generate_response::Part;
use wire::v1::{self, GenerateResponse, coordinator_server};
use wire::{report, settings};

use super::RETRY_AFTER;
use super::generation::RequestContext;
use super::prepare::SharedState;

/// Most lists of models made at a time: each asks peers.
const LISTINGS: usize = 8;

/// How long a list of models waits for a peer to describe itself.
const LISTING_TIMEOUT: Duration = Duration::from_secs(2);

/// The gRPC service.
pub(crate) struct GrpcService {
    shared: Arc<SharedState>,
    listings: Semaphore,
}

impl GrpcService {
    pub(crate) fn new(shared: Arc<SharedState>) -> Self {
        Self {
            shared,
            listings: Semaphore::new(LISTINGS),
        }
    }
}

#[tonic::async_trait]
impl coordinator_server::Coordinator for GrpcService {
    type GenerateStream = BoxStream<GenerateResponse>;

    async fn generate(
        &self,
        request: Request<v1::GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        let (metadata, extensions, message) = request.into_parts();
        let context = RequestContext {
            metadata: &metadata,
            client: extensions.get::<TokenHolder>(),
            deadline: deadline::from_metadata(&metadata),
            kept_per_token: 0,
        };
        let mut generated = self
            .shared
            .generate(vec![message], 1, context, None)
            .await?;
        let parts = generated.outputs.pop();
        let parts = parts.ok_or_else(|| Status::internal("a request without an output"))?;
        // The call ends as the answer does, so that gateways, interceptors and meters that read nothing but statuses count
        // a failure as one.
        let parts = parts.flat_map(|part| {
            let failure = match &part.part {
                Some(Part::Finished(finished)) => report::failure(finished),
                _ => None,
            };
            stream::iter([Ok(part)].into_iter().chain(failure.map(Err)))
        });
        Ok(Response::new(Box::pin(parts)))
    }

    async fn list_models(
        &self,
        request: Request<v1::ListModelsRequest>,
    ) -> Result<Response<v1::ListModelsResponse>, Status> {
        let refused = |_| overloaded("too many lists of models at once", RETRY_AFTER);
        let _permit = self.listings.try_acquire().map_err(refused)?;
        let deadline = deadline::from_metadata(request.metadata());
        let timeout = deadline.map_or(LISTING_TIMEOUT, |it| it.min(LISTING_TIMEOUT));
        let models = self.shared.models.iter();
        let models = join_all(models.map(|model| list(model, timeout))).await;
        Ok(Response::new(v1::ListModelsResponse { models }))
    }

    async fn list_methods(
        &self,
        _request: Request<v1::ListMethodsRequest>,
    ) -> Result<Response<v1::ListMethodsResponse>, Status> {
        let lossless_only = self.shared.config.lossless_only;
        Ok(Response::new(settings::listing(lossless_only)))
    }
}

/// Returns a model and what its peers say of themselves; both are asked at once.
async fn list(model: &ServedModel, timeout: Duration) -> v1::ServedModel {
    let describe = async |kind| {
        let described = tokio::time::timeout(timeout, describe(model, kind)).await;
        described.ok().flatten()
    };
    let (verifier, drafter) = tokio::join!(describe(Peer::Verifier), describe(Peer::Drafter));
    v1::ServedModel {
        name: model.name().to_owned(),
        verifier,
        drafter,
        has_drafters: model.names_drafters(),
        draft_models: (model.gains().into_iter())
            .map(|(draft_model, gain)| v1::DraftModelGain {
                name: draft_model.to_string(),
                gain,
            })
            .collect(),
    }
}

/// Returns a peer's description; none if it cannot be reached.
async fn describe(model: &ServedModel, kind: Peer) -> Option<v1::PeerDescription> {
    let query = PeerQuery {
        peer: kind,
        session: [0; 16],
        requirements: None,
        draft_model: None,
        beginning: Beginning::default(),
    };
    let target = model.target(&query.session).await.ok()?;
    let endpoint = model.pick(&query).await.ok()?;
    let description = described(&endpoint, kind, &target).await.ok()?;
    Some((*description).clone())
}
