//! Which web pages a browser lets read answers.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, Method};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};

use super::guard::REQUEST_ID;

/// How long a browser need not ask again what a page may send.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Returns the layer that tells browsers so, if there are pages of other origins at all; `*` among `origins` is any.
/// Tokens are no credentials in the sense of CORS: a page must know them.
pub(super) fn layer(origins: &[String]) -> Option<CorsLayer> {
    let allowed: AllowOrigin = if origins.iter().any(|origin| origin == "*") {
        Any.into()
    } else {
        let origins = origins.iter();
        AllowOrigin::list(origins.filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    (!origins.is_empty()).then(|| {
        CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::POST])
            .allow_headers(AllowHeaders::mirror_request())
            // From a page of the internet to a machine at home.
            .allow_private_network(true)
            .expose_headers([REQUEST_ID, RETRY_AFTER])
            .max_age(MAX_AGE)
    })
}
