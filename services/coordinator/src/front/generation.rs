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

use super::admission::Place;
use super::prepare::Shared;
use crate::driver::{self, AnswerStream, Driver, Prepared};
use crate::observe::Observer;

/// What a client sends with a request beside its message.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    /// Headers, with the trace that the client goes on with, if any.
    pub(super) metadata: &'a MetadataMap,
    /// Who sent it, if clients must show tokens.
    pub(super) client: Option<&'a TokenHolder>,
    /// How long the client waits, if it says.
    pub(super) deadline: Option<Duration>,
    /// Bytes that the front keeps of each token until the answer's end.
    pub(super) kept_per_token: u64,
}

/// Outputs under way.
pub(super) struct Generated {
    pub(super) outputs: Vec<Running>,
    /// The memory reserved for the tokens that the front keeps.
    pub(super) room: OwnedSemaphorePermit,
}

/// An output under way.
pub(super) struct Running {
    /// Its identifier in logs and traces.
    pub(super) request_id: String,
    /// The text of its target model.
    pub(super) text: Arc<ServedText>,
    /// The parts of its answer as they come.
    pub(super) parts: AnswerStream,
}

impl Shared {
    /// Admits `choices` outputs of each message, all of them or none, and runs each in a task of its own. Each message is
    /// checked and tokenised once. `reading` is the place of a large request, which is returned once that is done.
    ///
    /// # Errors
    /// The status that the client is to get.
    pub(super) async fn generate(
        self: &Arc<Self>,
        messages: Vec<v1::GenerateRequest>,
        choices: u32,
        arrival: Arrival<'_>,
        reading: Option<OwnedSemaphorePermit>,
    ) -> Result<Generated, Status> {
        let mut observers = Vec::new();
        let tenant = arrival.client.and_then(|client| client.tenant.as_ref());
        for message in &messages {
            let observer =
                || Observer::arrived(&self.observation, arrival.metadata, tenant, message);
            observers.extend((0..choices).map(|_| observer()));
        }
        match self
            .prepare_all(messages, choices, arrival, reading, &mut observers)
            .await
        {
            Ok((prepared, room)) => {
                let outputs = prepared.into_iter().zip(observers);
                let outputs = outputs.map(|(output, observer)| self.run(output, observer));
                let outputs = outputs.collect();
                Ok(Generated { outputs, room })
            }
            Err(status) => {
                for observer in observers {
                    observer.refused(&status);
                }
                Err(status)
            }
        }
    }

    async fn prepare_all(
        self: &Arc<Self>,
        messages: Vec<v1::GenerateRequest>,
        choices: u32,
        arrival: Arrival<'_>,
        mut reading: Option<OwnedSemaphorePermit>,
        observers: &mut [Observer],
    ) -> Result<(Vec<Prepared>, OwnedSemaphorePermit), Status> {
        let client = arrival.client;
        let places = self
            .admission
            .admit_together(client, observers.len() as u32)?;
        let quota = self.admission.begin(client)?;
        let mut prompt_tokens = 0;
        let unasked = self
            .admission
            .unasked_tokens(arrival.kept_per_token, observers.len());
        let mut outputs = places.into_iter().zip(observers);
        let mut next = || outputs.next().ok_or_else(no_place);
        let mut prepared = Vec::new();
        for mut message in messages {
            if let Some(tenant) = tenant_of(client, &message) {
                tenant.clone_into(&mut message.tenant);
            }
            let (place, observer): (Place, &mut Observer) = next()?;
            let first = self
                .prepare(
                    message,
                    place,
                    arrival.deadline,
                    unasked,
                    &mut reading,
                    observer,
                )
                .await?;
            let at = prepared.len();
            prompt_tokens += first.request.prompt.len() as u64;
            prepared.push(first);
            for choice in 1..choices {
                let (place, observer) = next()?;
                let another = self.another(&prepared[at], choice, place, observer)?;
                prepared.push(another);
            }
        }
        self.admission.admit_prompts(&quota, prompt_tokens)?;
        for output in &mut prepared {
            output.quota = quota.clone();
        }
        let tokens: u64 = prepared
            .iter()
            .map(|output| output.request.told_tokens())
            .sum();
        let room = self
            .admission
            .admit_answer(tokens, arrival.kept_per_token)?;
        Ok((prepared, room))
    }

    fn run(&self, prepared: Prepared, observer: Observer) -> Running {
        let (context, lines) = (observer.context(), observer.log_lines());
        let (config, health) = (&self.config, self.health.clone());
        let (answers, parts) = driver::answers();
        let running = Running {
            request_id: prepared.request_id.clone(),
            text: Arc::clone(&prepared.target.text),
            parts,
        };
        let driver = Driver::new(prepared, answers, config, health, observer);
        tokio::spawn(trace::within(context, driver.run()).instrument(lines));
        running
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

/// The status of an output without a place. It is never returned: there are as many places as outputs.
fn no_place() -> Status {
    Status::internal("an output without a place")
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
