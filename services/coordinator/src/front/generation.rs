//! Running a request that was let in, whichever front it came to.

use std::sync::Arc;
use std::time::Duration;

use server::auth::Client;
use server::trace;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tracing::Instrument;
use wire::v1;

use super::prepare::Shared;
use crate::driver::{self, AnswerStream, Driver};
use crate::observe::Observer;

/// What a client sends with a request beside its message.
pub(super) struct Arrival<'a> {
    /// Headers, with the trace that the client goes on with, if any.
    pub(super) metadata: &'a MetadataMap,
    /// Who sent it, if clients must show tokens.
    pub(super) client: Option<&'a Client>,
    /// How long the client waits, if it says.
    pub(super) deadline: Option<Duration>,
}

impl Shared {
    /// Lets a request in and runs it in a task of its own. Returns its identifier in logs and traces, and the parts of
    /// its answer as they come.
    ///
    /// # Errors
    /// The status that its client is to get.
    pub(super) async fn generate(
        self: &Arc<Self>,
        mut message: v1::GenerateRequest,
        arrival: Arrival<'_>,
    ) -> Result<(String, AnswerStream), Status> {
        let mut observer = Observer::arrived(&self.observation, arrival.metadata, &message);
        if let Some(tenant) = arrival.client.and_then(|client| client.tenant.as_deref()) {
            tenant.clone_into(&mut message.tenant);
        }
        let Arrival {
            client, deadline, ..
        } = arrival;
        match self.prepare(message, client, deadline, &mut observer).await {
            Ok(prepared) => {
                let (context, lines) = (observer.context(), observer.log_lines());
                let (config, health) = (&self.config, self.health.clone());
                let (answers, parts) = driver::answers();
                let request_id = prepared.request_id.clone();
                let driver = Driver::new(prepared, answers, config, health, observer);
                tokio::spawn(trace::within(context, driver.run()).instrument(lines));
                Ok((request_id, parts))
            }
            Err(status) => {
                observer.refused(&status);
                Err(status)
            }
        }
    }
}
