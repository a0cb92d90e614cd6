//! From a request for texts to its outputs under way.

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use text::ServedText;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tonic::metadata::MetadataMap;
use wire::status::BadField;
use wire::v1;
use wire::v1::generate_request::Prompt;

use super::error::{ApiError, Names};
use super::guard::Caller;
use super::options::{Delivery, MOST_OUTPUTS};
use super::state::Front;
use crate::driver::AnswerStream;
use crate::front::generation::Arrival;
use crate::request::random_seed;

/// A request for texts that was read, and is still to be admitted.
pub(super) struct Order {
    /// The fields of the request that all outputs have in common.
    pub(super) request: v1::GenerateRequest,
    pub(super) delivery: Delivery,
    /// Names of its fields that differ from those over gRPC.
    pub(super) names: Names,
    /// Each prompt; none where the request holds messages.
    pub(super) prompts: Vec<Option<Prompt>>,
    /// Whether the answer echoes the prompts.
    pub(super) keeps_prompts: bool,
    /// Bytes that the answer keeps of each token until its end.
    pub(super) kept_per_token: u64,
}

/// A request that was let in, with one stream for each output.
pub(super) struct Admitted {
    pub(super) delivery: Delivery,
    pub(super) logprobs: bool,
    pub(super) text: Arc<ServedText>,
    pub(super) model: String,
    /// The identifier of its first output in logs and traces.
    pub(super) id: String,
    pub(super) outputs: Vec<AnswerStream>,
    /// The memory reserved for the tokens that the answer keeps until its end.
    _room: OwnedSemaphorePermit,
    /// The prompts, each of which has as many outputs; none of a conversation.
    pub(super) prompts: Vec<Option<Prompt>>,
}

impl Admitted {
    /// Whether a whole answer reports tokens beside its text.
    pub(super) fn keeps_tokens(&self) -> bool {
        self.logprobs || self.delivery.token_ids
    }
}

impl Front {
    /// Lets all outputs of `order` in; none goes on if one is refused.
    ///
    /// # Errors
    /// What the first one is refused with.
    pub(super) async fn admit(
        &self,
        order: Order,
        caller: &Caller,
        headers: &HeaderMap,
        reading: Option<OwnedSemaphorePermit>,
    ) -> Result<Admitted, ApiError> {
        let names = order.names;
        // It is large, and callers hold it by value.
        let admitted = Box::pin(self.let_in(order, caller, headers, reading)).await;
        admitted.map_err(|error| error.naming(names))
    }

    async fn let_in(
        &self,
        order: Order,
        caller: &Caller,
        headers: &HeaderMap,
        reading: Option<OwnedSemaphorePermit>,
    ) -> Result<Admitted, ApiError> {
        let Order {
            mut request,
            delivery,
            mut prompts,
            keeps_prompts,
            kept_per_token,
            ..
        } = order;
        self.model(&request.model)?
            .name()
            .clone_into(&mut request.model);
        let model = request.model.clone();
        let count = prompts.len() * delivery.choices as usize;
        if count > MOST_OUTPUTS as usize {
            let problem =
                format!("{count} outputs, n for each prompt, expected at most {MOST_OUTPUTS}");
            return Err(BadField::new("n", problem).into());
        }
        // The outputs of a request differ by the choice alone.
        request.seed.get_or_insert_with(random_seed);
        let logprobs = request.logprobs;
        let message = |prompt: &mut Option<Prompt>, request: v1::GenerateRequest| {
            let prompt = if keeps_prompts {
                prompt.clone()
            } else {
                prompt.take()
            };
            v1::GenerateRequest { prompt, ..request }
        };
        let mut messages = Vec::new();
        if let Some((last, others)) = prompts.split_last_mut() {
            for prompt in others {
                messages.push(message(prompt, request.clone()));
            }
            messages.push(message(last, request));
        }
        let metadata = MetadataMap::from_headers(headers.clone());
        let arrival = Arrival {
            metadata: &metadata,
            client: caller.client.as_ref(),
            deadline: None,
            kept_per_token,
        };
        let generated = self
            .shared
            .generate(messages, delivery.choices, arrival, reading)
            .await?;
        let first = generated.outputs.first();
        let first = first.ok_or_else(|| Status::internal("a request without an output"))?;
        Ok(Admitted {
            delivery,
            logprobs,
            text: Arc::clone(&first.text),
            model,
            id: first.request_id.clone(),
            outputs: generated
                .outputs
                .into_iter()
                .map(|output| output.parts)
                .collect(),
            _room: generated.room,
            prompts,
        })
    }
}

/// Seconds since 1970.
pub(super) fn unix_time() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
