//! What the admin port answers over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use net::loopback::{BrowserRefusal, Trusted};
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

use super::status;
use crate::health::HealthOf;
use crate::metrics::TextFormat;
use crate::process::{Process, ServiceConditions};
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

/// All routes. Others are not found; methods but GET and HEAD are not allowed. Where there is one, `local` says whom
/// a port of this machine alone answers.
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
        .merge(status::routes())
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
                BrowserRefusal::Host => "; admin.trusted_hosts names hosts that are answered too",
                BrowserRefusal::Origin => "",
            };
            (StatusCode::FORBIDDEN, format!("{refusal}{remedy}\n")).into_response()
        }
        None => next.run(request).await,
    }
}

fn exposition(State(process): State<Process>, headers: &HeaderMap, vllm_metrics: bool) -> Response {
    let format = format(headers);
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

/// Answers with the process's own heartbeat: that it answers at all, and that no engine of its has failed. Peers do not
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

/// Returns whether requests should be sent here.
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
fn verdict(holds: bool, what: &str, services: &ServiceConditions) -> Response {
    let status = if holds {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let conditions = services.conditions();
    let described: Vec<String> = conditions
        .iter()
        .map(|(name, condition)| format!("{name} is {condition}"))
        .collect();
    let line = match (holds, described.as_slice()) {
        (true, _) => format!("{what}\n"),
        (false, []) => format!("not {what}: starting, no service is up yet\n"),
        (false, described) => format!("not {what}: {}\n", described.join(", ")),
    };
    (status, [(header::CONTENT_TYPE, PLAIN_TEXT), NOT_KEPT], line).into_response()
}

/// Returns the format that the header `Accept` asks for: OpenMetrics if it is named there and nothing is preferred to
/// it, else Prometheus' own.
pub(super) fn format(headers: &HeaderMap) -> TextFormat {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted: Vec<(String, f64)> = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(weighted)
        .collect();
    let weight = |types: [&str; 2]| {
        let weights = accepted
            .iter()
            .filter(|(name, _)| types.contains(&name.as_str()));
        weights.fold(0.0, |most: f64, &(_, weight)| most.max(weight))
    };
    let open = weight(["application/openmetrics-text", "application/*"]);
    // Whoever reads OpenMetrics says so, and whoever takes anything may know the older format alone.
    if open > 0.0 && open >= weight(["text/plain", "text/*"]) {
        TextFormat::OpenMetrics
    } else {
        TextFormat::Prometheus
    }
}

/// Returns a type of an `Accept`, in lower case, and its weight.
fn weighted(part: &str) -> (String, f64) {
    let mut pieces = part.split(';').map(str::trim);
    let name = pieces.next().unwrap_or_default().to_ascii_lowercase();
    let weight = pieces.find_map(|piece| piece.strip_prefix("q=")?.parse().ok());
    (name, weight.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_that_is_liked_most() {
        use TextFormat::{OpenMetrics, Prometheus};
        for (accept, expected) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/html, */*;q=0.8", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            ("text/plain", Prometheus),
            ("Text/Plain; version=0.0.4", Prometheus),
            ("text/*", Prometheus),
            ("text/plain, */*", Prometheus),
            ("application/openmetrics-text;q=0", Prometheus),
            // Prometheus by default, and where it was told to read the older format.
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Prometheus),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(format(&headers), expected, "{accept}");
        }
        assert_eq!(format(&HeaderMap::new()), Prometheus);
    }
}
