//! `/v1/messages`: a turn of a conversation in Anthropic's form, over the same request.

mod answer;
mod request;

use axum::extract::State;
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;

use super::error::ApiError;
use super::guard::RequestId;
use super::output::WholeOutput;
use super::state::TextCall;
use answer::MessageAnswer;

/// An error as Anthropic's clients read it.
pub(super) struct MessageError(ApiError);

impl IntoResponse for MessageError {
    fn into_response(self) -> Response {
        let mut body = self.0.body();
        body["type"] = json!("error");
        let mut response = self.0.into_response();
        *response.body_mut() = body.to_string().into();
        response.headers_mut().remove(CONTENT_LENGTH);
        response
    }
}

/// Answers a request.
pub(super) async fn create(
    (State(state), caller, headers, body): TextCall,
) -> Result<Response, MessageError> {
    let answer = async {
        let (request, reading) = state.read(body, request::read).await?;
        let started = state.start_one(request, &caller, &headers, reading);
        let (request, parts) = started.await?;
        let id = Extension(RequestId(request.id.clone()));
        let answer = MessageAnswer { request };
        if answer.request.delivery.stream {
            return Ok((id, answer.events(parts)).into_response());
        }
        let output = WholeOutput::collect(parts, &answer.request.text, false).await?;
        Ok((id, Json(answer.whole(&output))).into_response())
    };
    answer.await.map_err(MessageError)
}
