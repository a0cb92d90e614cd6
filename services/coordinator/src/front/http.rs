//! The HTTP front: OpenAI's API over the same requests as gRPC.
//!
//! | module | what it holds |
//! |---|---|
//! | `guard` | who may ask, from where, and from which pages |
//! | `fields` | reading JSON, field by field |
//! | `options` | what all requests for text have in common |
//! | `messages` | the turns of a conversation |
//! | `completions`, `chat` | requests and layouts of two forms of answers |
//! | `responses` | the third form, with events of its own |
//! | `anthropic`, `ollama` | the same in forms of others |
//! | `state` | what the routes share, and a request's way to its outputs |
//! | `output`, `answer` | answers, whole or as events |
//! | `logprobs`, `report` | what answers say beside their text |
//! | `tools` | what a model may call |
//! | `tokens` | the tokens of texts |
//! | `openapi` | the description of all that |
//! | `page` | the page at `/` |
//! | `error` | errors as clients read them, and the names of fields in them |

mod answer;
mod anthropic;
mod chat;
mod completions;
mod error;
mod fields;
mod guard;
mod logprobs;
mod messages;
mod ollama;
mod openapi;
mod options;
mod output;
mod page;
mod report;
mod responses;
mod state;
mod structured;
mod tokens;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use net::auth::Guard;
use net::loopback::Trusted;
use serde_json::{Value, json};
use wire::{settings, v1};

use super::prepare::SharedState;
use crate::limits::MAX_REQUEST_BYTES;
use error::ApiError;
use state::{HttpState, TextCall, unix_time};

/// Returns what answers on the port. `is_local` says whether it can be reached from this machine alone.
pub(crate) fn front(
    shared: &Arc<SharedState>,
    guard: Guard,
    is_local: bool,
) -> net::http::HttpRoutes {
    let config = &shared.config.http;
    let routes = routes(shared, guard, is_local);
    let routes = match guard::cors(&config.cors_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    let router = if is_local {
        let trusted = Trusted {
            hosts: config.trusted_hosts.clone(),
            origins: config.cors_origins.clone(),
        };
        routes.layer(from_fn_with_state(Arc::new(trusted), guard::local_only))
    } else {
        routes
    };
    net::http::HttpRoutes {
        router,
        max_request_bytes: MAX_REQUEST_BYTES,
        idle_timeout: Duration::from_millis(config.idle_timeout_ms.get()),
    }
}

/// Returns all routes.
fn routes(shared: &Arc<SharedState>, guard: Guard, is_local: bool) -> Router {
    let state = HttpState {
        shared: Arc::clone(shared),
        began: unix_time(),
        any_model: shared.config.http.answers_to_any_name(is_local),
    };
    let api = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/methods", get(methods))
        .route("/v1/models/{*name}", get(model))
        .route("/v1/completions", post(completion))
        .route("/v1/chat/completions", post(chat_turn))
        .route("/v1/responses", post(responses::create))
        .route("/v1/messages", post(anthropic::create))
        .route("/api/chat", post(ollama::chat))
        .route("/api/generate", post(ollama::generate))
        .route("/api/tags", get(ollama::tags))
        .route("/api/version", get(version))
        .route("/tokenize", post(tokens::tokenize))
        .route("/tokenizer_info", get(tokens::info))
        .route("/detokenize", post(tokens::detokenize))
        .layer(from_fn(guard::received))
        .layer(from_fn_with_state(guard, guard::authorised));
    let page = shared.config.http.page.then(page::routes);
    api.merge(page.unwrap_or_default())
        .route("/health", get(|| async { StatusCode::OK }))
        .route("/ready", get(ready))
        .route("/version", get(version))
        .route("/openapi.json", get(openapi::describe))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        // What was received is within its bounds.
        .layer(DefaultBodyLimit::disable())
        .with_state(state)
}

async fn unknown(request: Request) -> ApiError {
    let problem = format!("{} is not served here", request.uri().path());
    ApiError::http(StatusCode::NOT_FOUND, problem)
}

async fn not_allowed(request: Request) -> ApiError {
    let (method, path) = (request.method(), request.uri().path());
    let problem = format!("{method} is not what {path} takes");
    ApiError::http(StatusCode::METHOD_NOT_ALLOWED, problem)
}

async fn completion(call: TextCall) -> Result<Response, ApiError> {
    answer::create(call, completions::read, &completions::LAYOUT).await
}

async fn chat_turn(call: TextCall) -> Result<Response, ApiError> {
    answer::create(call, chat::read, &chat::LAYOUT).await
}

fn described(name: &str, created: u64) -> Value {
    json!({ "id": name, "object": "model", "created": created, "owned_by": "outrider" })
}

/// Returns all models, the default one first.
async fn models(State(state): State<HttpState>) -> Json<Value> {
    let names = state.shared.models.names().into_iter();
    let data: Vec<_> = names.map(|name| described(name, state.began)).collect();
    Json(json!({ "object": "list", "data": data }))
}

/// Returns one model.
async fn model(
    State(state): State<HttpState>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, ApiError> {
    let rejected = |error: PathRejection| ApiError::http(error.status(), error.body_text());
    let Path(name) = name.map_err(rejected)?;
    let model = state.shared.model(&name)?;
    Ok(Json(described(model.name(), state.began)))
}

/// Returns every method with what it takes, every deferral rule and every axis.
async fn methods(State(state): State<HttpState>) -> Json<v1::ListMethodsResponse> {
    Json(settings::listing(state.shared.config.lossless_only))
}

/// Returns whether requests should be sent here.
async fn ready(State(state): State<HttpState>) -> Response {
    if state.shared.health.is_ready() {
        return "ready\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
}

/// Returns the version of the program.
async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION") }))
}
