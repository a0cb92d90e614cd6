//! What the routes share, and the way of a request for texts from its body to its outputs under way.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use fleet::ServedModel;
use text::ServedText;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tonic::metadata::MetadataMap;
use wire::status::BadField;
use wire::v1;
use wire::v1::generate_request::Prompt;

use super::error::{ApiError, FieldNames};
use super::guard::Caller;
use super::options::Delivery;
use crate::driver::ResponseStream;
use crate::front::generation::RequestContext;
use crate::front::memory::off_async_threads;
use crate::front::prepare::SharedState;
use crate::limits::MOST_OUTPUTS;
use crate::request::random_seed;

/// What the routes share. Cheap to clone.
#[derive(Clone)]
pub(super) struct HttpState {
    pub(super) shared: Arc<SharedState>,
    /// When the service began, in seconds since 1970.
    pub(super) began: u64,
    /// Whether the one model that is served answers to any name.
    pub(super) any_model: bool,
}

/// What the handler of a request for texts gets.
pub(super) type TextCall = (State<HttpState>, Extension<Caller>, HeaderMap, Bytes);

/// A request for texts that was read, and is still to be admitted.
pub(super) struct ParsedRequest {
    /// The fields of the request that all outputs have in common.
    pub(super) request: v1::GenerateRequest,
    pub(super) delivery: Delivery,
    /// Names of its fields that differ from those over gRPC.
    pub(super) names: FieldNames,
    /// What of it is left out, one sentence each.
    pub(super) warnings: Vec<String>,
    /// Each prompt; none where the request holds messages.
    pub(super) prompts: Vec<Option<Prompt>>,
    /// Whether each output begins with its prompt.
    pub(super) echo: bool,
    /// Bytes that the answer keeps of each token until its end.
    pub(super) kept_per_token: u64,
}

/// A request that was let in, with one stream for each output.
pub(super) struct RunningRequest {
    pub(super) delivery: Delivery,
    pub(super) logprobs: bool,
    pub(super) warnings: Vec<String>,
    pub(super) text: Arc<ServedText>,
    pub(super) model: String,
    /// The identifier of its first output in logs and traces.
    pub(super) id: String,
    /// When it began, in seconds since 1970.
    pub(super) created: u64,
    pub(super) outputs: Vec<ResponseStream>,
    /// The text before each output: its prompt, where that is echoed.
    pub(super) before: Vec<String>,
    /// The memory reserved for the tokens that the answer keeps until its end.
    _room: OwnedSemaphorePermit,
}

/// Bodies of more bytes are read off the async threads, a few at a time.
const LARGE_BODY: usize = 32 << 10;

/// Requests with longer bodies hold their place until their text is tokenised, so that few such texts are in memory at a
/// time.
const KEEPS_PLACE: usize = 256 << 10;

impl HttpState {
    /// Returns the model that a request names: the first one if `name` is empty, and the only one whatever `name` is, if
    /// the configuration allows that.
    ///
    /// # Errors
    /// Names those that are served.
    pub(super) fn model(&self, name: &str) -> Result<&Arc<ServedModel>, Status> {
        let mut models = self.shared.models.iter();
        match (models.next(), models.next()) {
            (Some(only), None) if self.any_model => Ok(only),
            _ => self.shared.model(name),
        }
    }

    /// Parses a body with `read`, off the async threads if it is large. A very large one also returns its place among
    /// [`SharedState::reading`], to be held until its text is tokenised.
    ///
    /// # Errors
    /// As `read`.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        body: Bytes,
        read: impl FnOnce(&[u8]) -> Result<T, BadField> + Send + 'static,
    ) -> Result<(T, Option<OwnedSemaphorePermit>), ApiError> {
        if body.len() <= LARGE_BODY {
            return Ok((read(&body).map_err(ApiError::unread)?, None));
        }
        let place = Arc::clone(&self.shared.reading).acquire_owned().await;
        // The place goes along: the work goes on if the client leaves.
        let reading = move || {
            let read = read(&body)?;
            Ok((read, place.ok().filter(|_| body.len() > KEEPS_PLACE)))
        };
        off_async_threads(reading).await.map_err(ApiError::unread)
    }

    /// Lets all outputs of `request` in and starts them; none goes on if one is refused.
    ///
    /// # Errors
    /// What the first one is refused with.
    pub(super) async fn start(
        &self,
        mut request: ParsedRequest,
        caller: &Caller,
        headers: &HeaderMap,
        reading: Option<OwnedSemaphorePermit>,
    ) -> Result<RunningRequest, ApiError> {
        let names = std::mem::take(&mut request.names);
        // It is large, and callers hold it by value.
        let started = Box::pin(self.start_outputs(request, caller, headers, reading)).await;
        started.map_err(|error| error.naming(names))
    }

    /// Lets a request with one output in and starts it.
    ///
    /// # Errors
    /// What it is refused with.
    pub(super) async fn start_one(
        &self,
        request: ParsedRequest,
        caller: &Caller,
        headers: &HeaderMap,
        reading: Option<OwnedSemaphorePermit>,
    ) -> Result<(RunningRequest, ResponseStream), ApiError> {
        let mut request = self.start(request, caller, headers, reading).await?;
        let parts = request.outputs.pop();
        let parts = parts.ok_or_else(|| Status::internal("a request without an output"))?;
        Ok((request, parts))
    }

    async fn start_outputs(
        &self,
        parsed: ParsedRequest,
        caller: &Caller,
        headers: &HeaderMap,
        reading: Option<OwnedSemaphorePermit>,
    ) -> Result<RunningRequest, ApiError> {
        let ParsedRequest {
            mut request,
            delivery,
            prompts,
            echo,
            kept_per_token,
            warnings,
            ..
        } = parsed;
        let model = self.model(&request.model)?.name().to_owned();
        request.model.clone_from(&model);
        let choices = delivery.choices as usize;
        let count = prompts.len() * choices;
        let most = MOST_OUTPUTS as usize;
        BadField::at_most("n", count, most, "outputs, n for each prompt")?;
        // The outputs of a request differ by the choice alone.
        request.seed.get_or_insert_with(random_seed);
        let logprobs = request.logprobs;
        let echoed = if echo {
            prompts.clone()
        } else {
            vec![None; prompts.len()]
        };
        let mut messages = vec![request; prompts.len()];
        for (message, prompt) in messages.iter_mut().zip(prompts) {
            message.prompt = prompt;
        }
        let metadata = MetadataMap::from_headers(headers.clone());
        let context = RequestContext {
            metadata: &metadata,
            client: caller.as_ref(),
            deadline: None,
            kept_per_token,
        };
        let generated = self
            .shared
            .generate(messages, delivery.choices, context, reading)
            .await?;
        let text = generated.text;
        let before = echoed.into_iter().map(|prompt| match prompt {
            None => String::new(),
            Some(Prompt::Text(prompt)) => prompt,
            // The output begins with a character that is incomplete at the end of its prompt.
            Some(Prompt::TokenIds(tokens)) => text.text_before(&tokens.ids),
        });
        let before = before.flat_map(|before| std::iter::repeat_n(before, choices));
        Ok(RunningRequest {
            delivery,
            logprobs,
            warnings,
            before: before.collect(),
            text,
            model,
            id: generated.request_id,
            created: unix_time(),
            outputs: generated.outputs,
            _room: generated.room,
        })
    }
}

/// Returns the seconds since 1970.
pub(super) fn unix_time() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
