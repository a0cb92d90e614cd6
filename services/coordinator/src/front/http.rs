//! The HTTP front: OpenAI's API over the same requests as gRPC.
//!
//! | module | what it holds |
//! |---|---|
//! | `guard`, `cors` | who may ask, from where, and from which pages |
//! | `fields` | reading JSON, field by field |
//! | `options`, `hints` | what all requests for text have in common, and what of it is ignored |
//! | `messages` | the turns of a conversation |
//! | `completions`, `chat` | requests and layouts of two forms of answers |
//! | `responses` | the third form, with events of its own |
//! | `state`, `run` | what the routes share, and letting outputs in |
//! | `output`, `answer`, `events` | answers, whole or as events |
//! | `logprobs`, `report` | what answers say beside their text |
//! | `models`, `tokens` | what is served, and its tokens |
//! | `openapi` | the description of all that |
//! | `error`, `names` | errors as clients read them, and the names of fields in them |

mod answer;
mod chat;
mod completions;
mod cors;
mod error;
mod events;
mod fields;
mod guard;
mod hints;
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
use net::auth::Guard;

use super::MAX_REQUEST_BYTES;
use super::prepare::Shared;
use error::ApiError;
use state::Front;

pub use fields::MAX_FIELDS;
pub use messages::MAX_PARTS;
pub use options::MOST_OUTPUTS;

/// What answers on the port. `is_local` says whether it can be reached from this machine alone.
pub(crate) fn front(shared: &Arc<Shared>, guard: Guard, is_local: bool) -> net::http::HttpRoutes {
    let config = &shared.config.http;
    let routes = routes(shared, guard, is_local);
    let routes = match cors::layer(&config.cors_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    let router = if is_local {
        let trusted = Arc::new(config.trusted());
        routes.layer(from_fn_with_state(trusted, guard::local_only))
    } else {
        routes
    };
    net::http::HttpRoutes {
        router,
        max_request_bytes: MAX_REQUEST_BYTES,
        idle_timeout: config.idle_timeout(),
    }
}

/// All routes.
fn routes(shared: &Arc<Shared>, guard: Guard, is_local: bool) -> Router {
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let front = Front {
        shared: Arc::clone(shared),
        began: began.map_or(0, |since| since.as_secs()),
        any_model: shared.config.http.answers_to_any_name(is_local),
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
    api.route("/health", get(models::health))
        .route("/ready", get(models::ready))
        .route("/version", get(models::version))
        .route("/openapi.json", get(openapi::describe))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        // What was received is within its bounds.
        .layer(DefaultBodyLimit::disable())
        .with_state(front)
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
