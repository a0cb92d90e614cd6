//! The page at `/`: three files, of this program. Whatever they do, a browser lets them reach nothing but this port.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// What the page may do: run its own script and style, and ask this port. No other page may hold it in a frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// What makes browsers ask whether a file is another one before they show it again.
const FRESH: HeaderValue = HeaderValue::from_static("no-cache");

/// A file: where it is served, its media type, and what is in it.
type PageFile = (&'static str, &'static str, &'static str);

const FILES: [PageFile; 3] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../../../page/dist/index.html"),
    ),
    (
        "/page.js",
        "text/javascript; charset=utf-8",
        include_str!("../../../page/dist/page.js"),
    ),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("../../../page/dist/page.css"),
    ),
];

/// Returns the routes of the page's files.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.into_iter().fold(Router::new(), |router, file| {
        router.route(
            file.0,
            get(move |headers| async move { respond(file, &headers) }),
        )
    })
}

fn respond((_, kind, text): PageFile, headers: &HeaderMap) -> Response {
    let tag = format!("\"{:016x}\"", wire::describe::fingerprint(text.as_bytes()));
    let asked = headers.get(IF_NONE_MATCH);
    let is_known = asked.is_some_and(|asked| asked.as_bytes() == tag.as_bytes());
    let fixed: [(HeaderName, HeaderValue); 6] = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, FRESH),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ];
    let tagged = (fixed, [(ETAG, tag)]);
    if is_known {
        (StatusCode::NOT_MODIFIED, tagged).into_response()
    } else {
        (tagged, text).into_response()
    }
}
