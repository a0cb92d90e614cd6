//! Asking a replica how it is, beside the requests.

use std::sync::Arc;
use std::time::Duration;

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::replica::Replica;
use crate::deadline::within;
use crate::fault::connection_fault;

/// How long a peer may take to answer a health check. No model has a part in the answer.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a round of a peer has failed that answers health checks meanwhile.
const SLOW: &str = "it answers health checks, but gave no answer in time";

/// Why a peer is left alone that does not answer.
pub const SILENT: &str = "no answer in time";

impl<D: Send + Sync + 'static> Replica<D> {
    /// It was silent for longer than it may be. One that computes for too long still answers a health check, and
    /// has failed one round; one that does not is left alone. Until that is known, others are tried first.
    pub fn silent(self: &Arc<Self>) {
        self.ask_how_it_is(|replica| replica.failed(SLOW));
    }

    /// It could not be reached, and was left alone for long enough. No request that can go elsewhere waits to find out
    /// whether it is back.
    pub(super) fn look_for(self: &Arc<Self>) {
        self.ask_how_it_is(Self::found);
    }

    /// Asks in the background, unless that is going on already; `if_there` is told if the process answers.
    fn ask_how_it_is(self: &Arc<Self>, if_there: impl FnOnce(&Self) + Send + 'static) {
        if self.suspected.send_replace(true) {
            return;
        }
        let replica = Arc::clone(self);
        tokio::spawn(async move {
            if replica.answers().await {
                if_there(&replica);
            } else {
                replica.unreachable(SILENT);
            }
            replica.suspected.send_replace(false);
        });
    }

    /// Returns whether the process answers a health check, whatever it says: then the connection stands.
    async fn answers(&self) -> bool {
        let mut client = HealthClient::new(self.channel());
        let checking = client.check(HealthCheckRequest::default());
        match within(HEALTH_TIMEOUT, "health check", checking).await {
            Ok(Ok(_)) => true,
            Ok(Err(status)) => connection_fault(&status).is_none(),
            Err(_) => false,
        }
    }
}
