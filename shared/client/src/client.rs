//! The client of a coordinator, and an answer under way.

use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use net::Credentials;
use net::channel::{ChannelConfig, connect};
use wire::v1;
use wire::v1::coordinator_client::CoordinatorClient;

use crate::answer::{CollectedAnswer, GenerationEvent};
use crate::calls::{Client, RetryWait};
use crate::error::Error;
use crate::policy::{Patience, Policy, is_starting_up};
use crate::reading::ResumableAnswer;

impl Client {
    /// Returns a client of the coordinator at `url`, `http://HOST:PORT` or `https://HOST:PORT`, with the certificates
    /// and the token of `credentials`. It connects with its first call, and again after every loss.
    ///
    /// # Errors
    /// [`Error::Url`], quoting the URL.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn connect(
        url: &str,
        config: &ChannelConfig,
        credentials: &Credentials,
    ) -> Result<Self, Error> {
        Ok(Self::new(connect(url, config, credentials)?))
    }

    /// Returns the client with another policy than the default one.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Has `tell` called whenever a call has to wait. That an answer under way was lost is told by
    /// [`GenerationEvent::Lost`](crate::GenerationEvent::Lost) beforehand.
    #[must_use]
    pub fn on_wait(mut self, tell: impl Fn(&RetryWait<'_>) + Send + Sync + 'static) -> Self {
        self.on_wait = Some(std::sync::Arc::new(tell));
        self
    }

    /// Generates. The request is checked when this returns; its answer comes as events. Dropping this future, or
    /// the generation, cancels the call.
    ///
    /// # Errors
    /// [`Error::Status`] if the request is refused, or nobody can be reached in time.
    pub async fn generate(&self, request: v1::GenerateRequest) -> Result<Generation, Error> {
        // On the heap, so that the futures of those who await this stay small.
        Box::pin(Generation::begin(self.clone(), request)).await
    }

    /// Returns the models served, in the order of the coordinator's configuration.
    ///
    /// # Errors
    /// [`Error::Status`] if the coordinator refuses, or cannot be reached in time.
    pub async fn models(&self) -> Result<Vec<v1::ServedModel>, Error> {
        let list = |mut coordinator: CoordinatorClient<_>| async move {
            coordinator.list_models(v1::ListModelsRequest {}).await
        };
        let policy = self.policy;
        let patience = Patience::new(&policy, is_starting_up, policy.startup);
        let listed = self.make(patience, list).await;
        Ok(listed.map_err(Error::Status)?.models)
    }
}

/// An answer as it comes: a stream that ends with [`GenerationEvent::Finished`], or with an error. Dropping it
/// cancels the call; the coordinator then stops, and its peers free what they hold.
#[derive(derive_more::Debug)]
pub struct Generation {
    #[debug(skip)]
    events: BoxStream<'static, Result<GenerationEvent, Error>>,
}

impl Generation {
    /// Asks, and waits until the request is taken.
    pub(crate) async fn begin(client: Client, request: v1::GenerateRequest) -> Result<Self, Error> {
        let reading = ResumableAnswer::begin(client, request).await?;
        let events = stream::try_unfold(reading, ResumableAnswer::next).boxed();
        Ok(Self { events })
    }

    /// Returns the next event; none after the last. Dropping the future loses no event.
    ///
    /// # Errors
    /// [`Error::Failed`] if the request failed, [`Error::Lost`] or [`Error::OtherTokens`] if the answer was lost and
    /// cannot go on, [`Error::Status`] if the coordinator ends the call otherwise. After an error nothing comes.
    pub async fn event(&mut self) -> Result<Option<GenerationEvent>, Error> {
        self.events.try_next().await
    }

    /// Returns the whole answer.
    ///
    /// # Errors
    /// Those of [`Generation::event`]. To keep the events before an error, add them to a [`CollectedAnswer`] one by
    /// one.
    pub async fn collect(mut self) -> Result<CollectedAnswer, Error> {
        let mut answer = CollectedAnswer::default();
        while let Some(event) = self.event().await? {
            answer.add(event);
        }
        Ok(answer)
    }
}
