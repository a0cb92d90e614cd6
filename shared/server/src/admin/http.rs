//! What the admin port answers over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

use super::accept;
use crate::health::Services;
use crate::health::grpc::HealthOf;
use crate::loopback::{Refusal, Trusted};
use crate::process::Process;
use crate::reflection::{self, ReflectionError};

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// Answers are of the moment.
const NOT_KEPT: (header::HeaderName, &str) = (header::CACHE_CONTROL, "no-store");

/// How long one answer may take.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest request of gRPC health: it names a service.
pub const MAX_REQUEST_BYTES: usize = 4 << 10;

/// The gRPC service of the port.
const HEALTH: &str = "grpc.health.v1.Health";

/// All routes. Others are not found; methods but GET and HEAD are not allowed. Where there is one, `local` says whom a port
/// of this machine alone answers.
///
/// # Errors
/// If gRPC health cannot be described.
pub(super) fn router(
    process: &Process,
    vllm_metrics: bool,
    local: Option<Trusted>,
) -> Result<Router, ReflectionError> {
    let metrics = async move |state, headers| exposition(state, &headers, vllm_metrics);
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .with_state(process.clone());
    let (services, only) = (process.services.clone(), None);
    let server =
        HealthServer::new(HealthOf { services, only }).max_decoding_message_size(MAX_REQUEST_BYTES);
    let routes = Routes::from(router).add_service(server);
    let health = (tonic_health::pb::FILE_DESCRIPTOR_SET, &[][..]);
    let routes = reflection::add_to(routes, health, HEALTH)?.routes;
    let router = routes.into_axum_router().layer(from_fn(in_time));
    Ok(match local {
        Some(trusted) => router.layer(from_fn_with_state(Arc::new(trusted), local_only)),
        None => router,
    })
}

/// Answers within [`ANSWER_TIMEOUT`].
async fn in_time(request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(ANSWER_TIMEOUT, next.run(request)).await;
    answered.unwrap_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response())
}

/// Refuses requests of web pages.
async fn local_only(State(trusted): State<Arc<Trusted>>, request: Request, next: Next) -> Response {
    match trusted.refusal(request.uri(), request.headers()) {
        Some(refusal) => {
            let remedy = match refusal {
                Refusal::Host => "; admin.trusted_hosts names hosts that are answered too",
                Refusal::Origin => "",
            };
            (StatusCode::FORBIDDEN, format!("{refusal}{remedy}\n")).into_response()
        }
        None => next.run(request).await,
    }
}

fn exposition(State(process): State<Process>, headers: &HeaderMap, vllm_metrics: bool) -> Response {
    let format = accept::format(headers);
    let metrics = &process.metrics;
    let text = if vllm_metrics {
        metrics.encode_with_aliases()
    } else {
        metrics.encode()
    };
    match text {
        Ok(text) => {
            let content_type = (header::CONTENT_TYPE, format.content_type());
            ([content_type, NOT_KEPT], format.rewrite(text)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The process's own heartbeat: that it answers at all, and that no engine of its has failed. Peers do not
/// matter, or all processes would be started anew for the loss of one.
async fn live(State(process): State<Process>) -> Response {
    verdict(process.services.are_alive(), "alive", &process.services)
}

/// What `/readyz` says of a process that is.
pub(super) const READY: &str = "ready";

/// What stands between that and what is wrong all the same.
pub(super) const BUT: &str = ", but ";

/// What that begins with of one that is not.
pub(super) const NOT_READY: &str = "not ready";

/// Whether requests should be sent here.
async fn ready(State(process): State<Process>) -> Response {
    let is_ready = process.services.are_ready();
    let warnings = if is_ready {
        process.warnings.all()
    } else {
        Vec::new()
    };
    let what = match warnings.as_slice() {
        [] => READY.to_owned(),
        warnings => format!("{READY}{BUT}{}", warnings.join("; ")),
    };
    verdict(is_ready, &what, &process.services)
}

/// One line: what is asked about, or how the services are that it fails for.
fn verdict(holds: bool, what: &str, services: &Services) -> Response {
    let status = if holds {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let conditions = services.conditions();
    let described: Vec<String> = conditions
        .iter()
        .map(|(name, condition)| format!("{name} is {}", condition.name()))
        .collect();
    let line = match (holds, described.as_slice()) {
        (true, _) => format!("{what}\n"),
        (false, []) => format!("not {what}: starting, no service is up yet\n"),
        (false, described) => format!("not {what}: {}\n", described.join(", ")),
    };
    (status, [(header::CONTENT_TYPE, PLAIN_TEXT), NOT_KEPT], line).into_response()
}
