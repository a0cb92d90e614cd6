//! `/api/chat`, `/api/generate` and `/api/tags`: Ollama's forms, over the same requests.

mod answer;
mod request;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::StreamExt;
use serde_json::{Value, json};
use wire::status::BadField;

use super::answer::{UNBUFFERED, taken};
use super::error::ApiError;
use super::guard::RequestId;
use super::output::WholeOutput;
use super::state::{HttpState, ParsedRequest, TextCall};
use answer::{Form, LineAnswer, Lines};

/// An error as Ollama's clients read it.
pub(super) struct LineError(ApiError);

impl IntoResponse for LineError {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.0.body()["error"]["message"] });
        let mut response = self.0.into_response();
        *response.body_mut() = body.to_string().into();
        response.headers_mut().remove(CONTENT_LENGTH);
        response
    }
}

/// Answers a conversation.
pub(super) async fn chat(call: TextCall) -> Result<Response, LineError> {
    let answered = create(call, request::chat, Form::Chat).await;
    answered.map_err(LineError)
}

/// Continues a text, or answers one as a conversation of one turn.
pub(super) async fn generate(call: TextCall) -> Result<Response, LineError> {
    let answered = create(call, request::generate, Form::Generate).await;
    answered.map_err(LineError)
}

async fn create(
    (State(state), caller, headers, body): TextCall,
    read: fn(&[u8]) -> Result<ParsedRequest, BadField>,
    form: Form,
) -> Result<Response, ApiError> {
    let (request, reading) = state.read(body, read).await?;
    let started = state.start_one(request, &caller, &headers, reading);
    let (request, parts) = started.await?;
    let id = Extension(RequestId(request.id.clone()));
    let answer = LineAnswer { request, form };
    if answer.request.delivery.stream {
        let lines = taken(Lines::new(answer), parts, Lines::take);
        let lines = lines.map(|line| Ok::<_, std::convert::Infallible>(format!("{line}\n")));
        let headers = [(CONTENT_TYPE, "application/x-ndjson")];
        let body = Body::from_stream(lines);
        return Ok((id, [UNBUFFERED], headers, body).into_response());
    }
    let output = WholeOutput::collect(parts, &answer.request.text, false).await?;
    Ok((id, Json(answer.whole(&output))).into_response())
}

/// Returns all models, the default one first.
pub(super) async fn tags(State(state): State<HttpState>) -> Json<Value> {
    let models = state.shared.models.iter().map(|model| {
        json!({
            "name": model.name(),
            "model": model.name(),
            "modified_at": answer::time(state.began),
            "size": 0,
            "digest": "",
            "details": { "format": "", "family": "", "families": [], "parameter_size": "", "quantization_level": "" },
        })
    });
    let models: Vec<_> = models.collect();
    Json(json!({ "models": models }))
}
