//! `/status`: a page for operators, and what it shows, `/status.json`. Nothing of prompts or outputs is in it.

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use crate::process::Process;

/// The page runs its own script and style, and asks this port.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file: where it is served, its media type, and what is in it.
const FILES: [(&str, &str, &str); 3] = [
    (
        "/status",
        "text/html; charset=utf-8",
        include_str!("status/index.html"),
    ),
    (
        "/status.js",
        "text/javascript; charset=utf-8",
        include_str!("status/status.js"),
    ),
    (
        "/status.css",
        "text/css; charset=utf-8",
        include_str!("status/status.css"),
    ),
];

/// Returns the page's routes.
pub(super) fn routes() -> Router<Process> {
    let json = Router::new().route("/status.json", get(told));
    FILES.into_iter().fold(json, |router, (path, kind, text)| {
        let headers = [
            (CONTENT_TYPE, kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
        ];
        router.route(path, get(async move || (headers, text)))
    })
}

/// Returns how the process and its parts are.
async fn told(State(process): State<Process>) -> impl IntoResponse {
    let conditions = process.services.conditions().into_iter();
    let services: Map<_, _> = conditions
        .map(|(name, condition)| (name.to_owned(), Value::from(condition.to_string())))
        .collect();
    let told = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": process.services.are_ready(),
        "services": services,
        "warnings": process.warnings.all(),
        "parts": process.status.all(),
    });
    ([(CACHE_CONTROL, "no-store")], Json(told))
}
