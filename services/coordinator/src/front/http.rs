//! The HTTP front: OpenAI's API over the same requests as gRPC.
//!
//! | module | what it holds |
//! |---|---|
//! | `guard` | who may ask, and from where |
//! | `fields` | reading JSON, field by field |
//! | `options` | what all requests for text have in common |
//! | `messages` | the turns of a conversation |
//! | `completions`, `chat` | requests and layouts of two forms of answers |
//! | `responses` | the third form, with events of its own |
//! | `state`, `run` | what the routes share, and letting outputs in |
//! | `output`, `answer` | answers, whole or as events |
//! | `logprobs`, `report` | what answers say beside their text |
//! | `models`, `tokens` | what is served, and its tokens |
//! | `openapi` | the description of all that |
//! | `error`, `names` | errors as clients read them, and the names of fields in them |

mod answer;
mod chat;
mod completions;
mod error;
mod fields;
mod guard;
mod logprobs;
mod messages;
mod models;
mod names;
mod openapi;
mod options;
mod output;
mod report;
mod responses;
mod run;
mod state;
mod tokens;

use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use server::auth::Guard;

use super::MAX_REQUEST_BYTES;
use super::prepare::Shared;
use error::ApiError;
use state::Front;

pub use fields::MAX_FIELDS;
pub use messages::MAX_PARTS;
pub use options::MOST_OUTPUTS;

/// What answers on the port. `is_local` says whether it can be reached from this machine alone.
pub(crate) fn front(shared: Arc<Shared>, guard: Guard, is_local: bool) -> server::http::Front {
    server::http::Front {
        router: routes(shared, guard, is_local),
        max_request_bytes: MAX_REQUEST_BYTES,
    }
}

/// All routes.
fn routes(shared: Arc<Shared>, guard: Guard, is_local: bool) -> Router {
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let front = Front {
        shared,
        began: began.map_or(0, |since| since.as_secs()),
    };
    let api = Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*name}", get(models::find))
        .route("/v1/completions", post(completions::create))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/responses", post(responses::create))
        .route("/tokenize", post(tokens::tokenize))
        .route("/tokenizer_info", get(tokens::info))
        .route("/detokenize", post(tokens::detokenize))
        .layer(from_fn(guard::received))
        .layer(from_fn_with_state(guard, guard::authorised));
    let routes = api
        .route("/health", get(models::health))
        .route("/ready", get(models::ready))
        .route("/version", get(models::version))
        .route("/openapi.json", get(openapi::describe))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        // What was received is within its bounds.
        .layer(DefaultBodyLimit::disable())
        .with_state(front);
    if is_local {
        routes.layer(from_fn(guard::local_only))
    } else {
        routes
    }
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
