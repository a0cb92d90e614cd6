//! Admits requests of either front, and runs their drivers.

use std::sync::Arc;
use std::time::Duration;

use net::auth::TokenHolder;
use ops::trace;
use text::ServedText;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tracing::Instrument;
use wire::open::EVERYONE;
use wire::v1;

use super::prepare::SharedState;
use crate::driver::{Driver, Prepared, ResponseStream, response_channel};
use crate::observe::RequestObserver;

/// What a client sends with a request beside its message.
#[derive(Clone, Copy)]
pub(super) struct RequestContext<'a> {
    /// Headers, with the trace that the client goes on with, if any.
    pub(super) metadata: &'a MetadataMap,
    /// Who sent it, if clients must show tokens.
    pub(super) client: Option<&'a TokenHolder>,
    /// How long the client waits, if it says.
    pub(super) deadline: Option<Duration>,
    /// Bytes that the front keeps of each token until the answer's end.
    pub(super) kept_per_token: u64,
}

/// The outputs of a request, under way.
pub(super) struct Generated {
    /// The identifier of the first output in logs and traces.
    pub(super) request_id: String,
    /// The text of their target model.
    pub(super) text: Arc<ServedText>,
    /// The parts of each output as they come.
    pub(super) outputs: Vec<ResponseStream>,
    /// The memory reserved for the tokens that the front keeps.
    pub(super) room: OwnedSemaphorePermit,
}

impl SharedState {
    /// Admits `choices` outputs of each message, all of them or none, and runs each in a task of its own. Each message is
    /// checked and tokenised once. `reading` is the place of a large request, which is returned once that is done.
    ///
    /// # Errors
    /// The status that the client is to get.
    pub(super) async fn generate(
        self: &Arc<Self>,
        messages: Vec<v1::GenerateRequest>,
        choices: u32,
        context: RequestContext<'_>,
        reading: Option<OwnedSemaphorePermit>,
    ) -> Result<Generated, Status> {
        let mut observers = Vec::new();
        let tenant = context.client.and_then(|client| client.tenant.as_ref());
        for message in &messages {
            let observer =
                || RequestObserver::arrived(&self.observation, context.metadata, tenant, message);
            observers.extend((0..choices).map(|_| observer()));
        }
        let prepared = self
            .prepare_all(messages, choices, context, reading, &mut observers)
            .await;
        let (prepared, room) = match prepared {
            Ok(prepared) => prepared,
            Err(status) => {
                for observer in observers {
                    observer.refused(&status);
                }
                return Err(status);
            }
        };
        let first = prepared.first();
        let first = first.ok_or_else(|| Status::internal("a request without an output"))?;
        let (request_id, text) = (first.request_id.clone(), Arc::clone(&first.target.text));
        let outputs = prepared.into_iter().zip(observers);
        let outputs = outputs.map(|(output, observer)| self.run(output, observer));
        Ok(Generated {
            request_id,
            text,
            outputs: outputs.collect(),
            room,
        })
    }

    async fn prepare_all(
        self: &Arc<Self>,
        messages: Vec<v1::GenerateRequest>,
        choices: u32,
        context: RequestContext<'_>,
        mut reading: Option<OwnedSemaphorePermit>,
        observers: &mut [RequestObserver],
    ) -> Result<(Vec<Prepared>, OwnedSemaphorePermit), Status> {
        let client = context.client;
        let places = self.admission.admit(client, observers.len() as u32)?;
        let unasked = self
            .admission
            .unasked_tokens(context.kept_per_token, observers.len());
        let mut outputs = places.into_iter().zip(observers);
        let mut prepared: Vec<Prepared> = Vec::new();
        let mut prompt_tokens = 0;
        for mut message in messages {
            if let Some(tenant) = tenant_of(client, &message) {
                tenant.clone_into(&mut message.tenant);
            }
            let first = prepared.len();
            let mut message = Some(message);
            for (choice, (place, observer)) in (0..choices).zip(&mut outputs) {
                let output = match message.take() {
                    Some(message) => {
                        let (deadline, reading) = (context.deadline, &mut reading);
                        let first = self
                            .prepare(message, place, deadline, unasked, reading, observer)
                            .await?;
                        prompt_tokens += first.request.prompt.len() as u64;
                        first
                    }
                    None => self.another(&prepared[first], choice, place, observer)?,
                };
                prepared.push(output);
            }
        }
        if let Some(first) = prepared.first() {
            let quota = &first.place.quota;
            self.admission.admit_prompts(quota, prompt_tokens)?;
        }
        let tokens = prepared.iter().map(|output| output.request.told_tokens());
        let room = self
            .admission
            .admit_answer(tokens.sum(), context.kept_per_token)?;
        Ok((prepared, room))
    }

    /// Runs the driver of an output in a task of its own, and returns what it sends to the client.
    fn run(&self, prepared: Prepared, observer: RequestObserver) -> ResponseStream {
        let (context, lines) = (observer.context(), observer.log_lines());
        let (sender, parts) = response_channel();
        let health = self.health.clone();
        let driver = Driver::new(prepared, sender, &self.config, health, observer);
        tokio::spawn(trace::within(context, driver.run()).instrument(lines));
        parts
    }
}

/// Returns the tenant that a request of `client` has, if not the one that it names: that of the client's token, and where
/// no tokens are wanted one for all who name none.
fn tenant_of<'a>(
    client: Option<&'a TokenHolder>,
    message: &v1::GenerateRequest,
) -> Option<&'a str> {
    match client {
        Some(client) => client.tenant.as_deref(),
        None => message.tenant.is_empty().then_some(EVERYONE),
    }
}

#[cfg(test)]
mod tests {
    use net::auth::RateLimits;

    use super::*;

    #[test]
    fn who_shows_no_token_shares_a_tenant_with_all_others_who_show_none() {
        let client = |tenant: Option<&str>| TokenHolder {
            tenant: tenant.map(Arc::from),
            token: 1,
            max_requests: None,
            rates: RateLimits::default(),
        };
        let message = |tenant: &str| v1::GenerateRequest {
            tenant: tenant.to_owned(),
            ..Default::default()
        };
        assert_eq!(tenant_of(None, &message("")), Some(EVERYONE));
        assert_eq!(tenant_of(None, &message("mine")), None);
        let named = client(Some("named"));
        assert_eq!(tenant_of(Some(&named), &message("mine")), Some("named"));
        for tenant in ["", "mine"] {
            assert_eq!(tenant_of(Some(&client(None)), &message(tenant)), None);
        }
    }
}
