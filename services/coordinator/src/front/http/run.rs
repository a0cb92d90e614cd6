//! From a request for texts to its outputs under way.

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use text::ServedText;
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
use crate::front::prepare::target;
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
    /// The prompts, each of which has as many outputs; none of a conversation.
    pub(super) prompts: Vec<Option<Prompt>>,
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
    ) -> Result<Admitted, ApiError> {
        let names = order.names;
        let admitted = self.let_in(order, caller, headers).await;
        admitted.map_err(|error| error.naming(names))
    }

    async fn let_in(
        &self,
        order: Order,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Admitted, ApiError> {
        let Order {
            mut request,
            delivery,
            prompts,
            ..
        } = order;
        let model = self.shared.model(&request.model)?;
        let text = target(model, &[0; 16]).await?.text;
        let model = model.name().to_owned();
        // The outputs of a request differ by the choice alone.
        request.seed.get_or_insert_with(random_seed);
        let metadata = MetadataMap::from_headers(headers.clone());
        let count = prompts.len() * delivery.choices as usize;
        if count > MOST_OUTPUTS as usize {
            let problem =
                format!("{count} outputs, n for each prompt, expected at most {MOST_OUTPUTS}");
            return Err(BadField::new("n", problem).into());
        }
        let (mut ids, mut outputs) = (Vec::new(), Vec::new());
        for prompt in &prompts {
            for choice in 0..delivery.choices {
                let message = v1::GenerateRequest {
                    prompt: prompt.clone().or_else(|| request.prompt.clone()),
                    choice,
                    ..request.clone()
                };
                let arrival = Arrival {
                    metadata: &metadata,
                    client: caller.client.as_ref(),
                    deadline: None,
                };
                let (id, parts) = self.shared.generate(message, arrival).await?;
                ids.push(id);
                outputs.push(parts);
            }
        }
        Ok(Admitted {
            delivery,
            logprobs: request.logprobs,
            text,
            model,
            // There is at least one prompt and one choice.
            id: ids.into_iter().next().unwrap_or_default(),
            outputs,
            prompts,
        })
    }
}

/// Seconds since 1970.
pub(super) fn unix_time() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
