//! `/v1/models`, and the server's own state.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::error::ApiError;
use super::state::Front;

fn described(name: &str, created: u64) -> Value {
    json!({ "id": name, "object": "model", "created": created, "owned_by": "outrider" })
}

/// All models, the default one first.
pub(super) async fn list(State(front): State<Front>) -> Json<Value> {
    let names = front.shared.models.names();
    let data: Vec<_> = names
        .iter()
        .map(|name| described(name, front.began))
        .collect();
    Json(json!({ "object": "list", "data": data }))
}

/// One model.
pub(super) async fn find(
    State(front): State<Front>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, ApiError> {
    let rejected = |error: PathRejection| ApiError::http(error.status(), error.body_text());
    let Path(name) = name.map_err(rejected)?;
    let model = front.shared.model(&name)?;
    Ok(Json(described(model.name(), front.began)))
}

/// Whether the process answers at all.
pub(super) async fn health() -> StatusCode {
    StatusCode::OK
}

/// Whether requests should be sent here.
pub(super) async fn ready(State(front): State<Front>) -> Response {
    if front.shared.health.is_ready() {
        return "ready\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
}

/// The version of the program.
pub(super) async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION") }))
}
