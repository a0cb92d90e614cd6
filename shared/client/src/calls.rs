//! Calls of the coordinator, made again where the policy says so.

use std::sync::Arc;
use std::time::Duration;

use net::MAX_MESSAGE_BYTES;
use net::channel::PeerChannel;
use tokio::time::{Instant, sleep};
use tonic::{Response, Status};
use wire::v1::coordinator_client::CoordinatorClient;

use crate::policy::{Patience, Policy};

/// A call that was not answered, and is about to be made again.
#[derive(Clone, Copy, Debug)]
pub struct RetryWait<'a> {
    /// Why it was not.
    pub status: &'a Status,
    /// How long until it is made again.
    pub delay: Duration,
    /// How often the client has waited before, for the same call.
    pub before: u32,
}

type OnWait = Arc<dyn Fn(&RetryWait<'_>) + Send + Sync>;

/// A client of a coordinator. Clones share its connection.
#[derive(Clone, derive_more::Debug)]
#[debug("Client {{ policy: {policy:?}, .. }}")]
pub struct Client {
    coordinator: CoordinatorClient<PeerChannel>,
    /// How the client deals with a coordinator that is not there, or has too much to do.
    pub policy: Policy,
    pub(crate) on_wait: Option<OnWait>,
}

impl Client {
    /// Returns a client of the coordinator that `channel` leads to.
    pub fn new(channel: PeerChannel) -> Self {
        let coordinator = CoordinatorClient::new(channel);
        Self {
            coordinator: coordinator.max_decoding_message_size(MAX_MESSAGE_BYTES),
            policy: Policy::default(),
            on_wait: None,
        }
    }

    /// Makes a call, and makes it again for as long as `patience` lasts.
    ///
    /// # Errors
    /// The last status.
    pub(crate) async fn make<T, F>(
        &self,
        mut patience: Patience,
        call: impl Fn(CoordinatorClient<PeerChannel>) -> F,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let began = Instant::now();
        let mut before = 0;
        loop {
            let status = match call(self.coordinator.clone()).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            let Some(delay) = patience.wait(&status, began.elapsed()) else {
                return Err(status);
            };
            if let Some(on_wait) = &self.on_wait {
                on_wait(&RetryWait {
                    status: &status,
                    delay,
                    before,
                });
            }
            before += 1;
            sleep(delay).await;
        }
    }
}
