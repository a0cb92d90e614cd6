//! The client of a coordinator.

use server::channel::{ChannelConfig, PeerChannel, connect};
use server::process::Process;
use tonic::{Response, Status};
use wire::v1;
use wire::v1::coordinator_client::CoordinatorClient;

use crate::calls::{Calls, Waiting};
use crate::error::Error;
use crate::generation::Generation;
use crate::loss::is_starting_up;
use crate::policy::{Patience, Policy};

/// A client of a coordinator. Clones share its connection.
#[derive(Clone, Debug)]
pub struct Client(Calls);

impl Client {
    /// A client of the coordinator at `url`, `http://HOST:PORT` or `https://HOST:PORT`, with the certificates and
    /// the token of `process`. It connects with its first call, and again after every loss.
    ///
    /// # Errors
    /// [`Error::Url`], quoting the URL.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn connect(url: &str, config: &ChannelConfig, process: &Process) -> Result<Self, Error> {
        Ok(Self::new(connect(url, config, process)?))
    }

    /// A client of the coordinator that `channel` leads to.
    pub fn new(channel: PeerChannel) -> Self {
        Self(Calls::new(channel))
    }

    /// The client with another policy than the default one.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.0.policy = policy;
        self
    }

    /// How the client deals with a coordinator that is not there, or has too much to do.
    pub fn policy(&self) -> Policy {
        self.0.policy
    }

    /// Has `tell` called whenever a call has to wait. That an answer under way was lost is told by
    /// [`Event::Lost`](crate::Event::Lost) beforehand.
    #[must_use]
    pub fn on_wait(mut self, tell: impl Fn(&Waiting<'_>) + Send + Sync + 'static) -> Self {
        self.0.on_wait = Some(std::sync::Arc::new(tell));
        self
    }

    /// Generates. The request is checked when this returns; its answer comes as events. Dropping this future, or
    /// the generation, cancels the call.
    ///
    /// # Errors
    /// [`Error::Status`] if the request is refused, or nobody can be reached in time.
    pub async fn generate(&self, request: v1::GenerateRequest) -> Result<Generation, Error> {
        // On the heap, so that the futures of those who await this stay small.
        Box::pin(Generation::begin(self.0.clone(), request)).await
    }

    /// The models served, in the order of the coordinator's configuration.
    ///
    /// # Errors
    /// [`Error::Status`] if the coordinator refuses, or cannot be reached in time.
    pub async fn models(&self) -> Result<Vec<v1::ServedModel>, Error> {
        let list = |mut coordinator: CoordinatorClient<_>| async move {
            coordinator.list_models(v1::ListModelsRequest {}).await
        };
        Ok(self.call(list).await?.models)
    }

    async fn call<T, F>(
        &self,
        call: impl Fn(CoordinatorClient<PeerChannel>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let policy = self.policy();
        let patience = Patience::new(&policy, is_starting_up, policy.startup);
        self.0.make(patience, call).await.map_err(Error::Status)
    }
}
