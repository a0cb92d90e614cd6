//! What is asked of every request before it is read: who sent it, from where, from which web page, and in which form.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{self, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use net::auth::{Guard, TokenHolder};
use net::loopback::{BrowserRefusal, Trusted};
use net::receiving::{RETRY_AFTER, ReceiveError, whole};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};
use wire::round::request_id;
use wire::status::overloaded;

use super::error::ApiError;

/// The header that names a request; a client's own name is given back.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header in which Anthropic's clients show their token.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Longest name of a request that is given back, in bytes.
const MAX_REQUEST_ID: usize = 128;

/// How long a browser need not ask again what a page may send.
const CORS_MAX_AGE: Duration = Duration::from_secs(600);

/// Who sent a request, if clients must show tokens.
pub(super) type Caller = Option<TokenHolder>;

/// The identifier of a request in logs and traces. A handler puts it into the extensions of its response.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Returns the layer that tells browsers which web pages may read answers: those of `origins`, of which `*` is any; none if
/// there are no such pages.
/// Tokens are no credentials in the sense of CORS: a page must know them.
pub(super) fn cors(origins: &[String]) -> Option<CorsLayer> {
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
            .expose_headers([REQUEST_ID, header::RETRY_AFTER])
            .max_age(CORS_MAX_AGE)
    })
}

/// Refuses requests of web pages to a port of this machine alone: a page that is open in a browser here must not
/// reach it, unless it is `trusted`.
pub(super) async fn local_only(
    State(trusted): State<Arc<Trusted>>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(refusal) = trusted.refusal(request.uri(), request.headers()) {
        let setting = match refusal {
            BrowserRefusal::Host => "trusted_hosts names hosts",
            BrowserRefusal::Origin => "cors_origins names origins",
        };
        let problem = format!("{refusal}; coordinator.http.{setting} that are answered too");
        return ApiError::http(StatusCode::FORBIDDEN, problem).into_response();
    }
    next.run(request).await
}

/// Lets requests in that show a token, where clients must. Each response has an `x-request-id`: the client's own, or else
/// the identifier in logs and traces, or else, for a request that was refused early, a new one.
pub(super) async fn authorised(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response {
    let name = named(request.headers());
    let (mut parts, body) = request.into_parts();
    take_api_key(&mut parts.headers);
    let caller: Caller = match guard.check(&mut parts.headers, &parts.extensions) {
        Ok(caller) => caller,
        Err(refusal) => {
            // It is not read, and let go before its answer is put off.
            drop(body);
            let error = ApiError::from(refusal.answer().await);
            return with_id(error.into_response(), name);
        }
    };
    parts.extensions.insert(caller);
    let request = Request::from_parts(parts, body);
    let is_json = request.method() != Method::POST || is_json(request.headers());
    if !is_json {
        let problem = "Content-Type must be application/json";
        let error = ApiError::http(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem);
        return with_id(error.into_response(), name);
    }
    with_id(next.run(request).await, name)
}

/// Puts the token that Anthropic's clients show where all others have it.
fn take_api_key(headers: &mut HeaderMap) {
    let key = headers.get(API_KEY).and_then(|key| key.to_str().ok());
    let bearer = key.map(|key| HeaderValue::from_str(&format!("Bearer {key}")));
    if let Some(Ok(bearer)) = bearer {
        headers.entry(header::AUTHORIZATION).or_insert(bearer);
    }
}

/// Reads the body of a request whole before it is handled, and says why where the server's gate lets it not in.
pub(super) async fn received(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let refused = match whole(body).await {
        Ok(body) => return next.run(Request::from_parts(parts, body.into())).await,
        Err(refused) => refused,
    };
    let problem = refused.to_string();
    let error = match refused {
        ReceiveError::Full { .. } => overloaded(problem, RETRY_AFTER).into(),
        ReceiveError::Late { .. } => ApiError::http(StatusCode::REQUEST_TIMEOUT, problem),
        ReceiveError::TooLarge { .. } => ApiError::http(StatusCode::PAYLOAD_TOO_LARGE, problem),
        ReceiveError::CutShort => ApiError::http(StatusCode::BAD_REQUEST, problem),
    };
    error.into_response()
}

/// Returns the client's name for a request, if it can be given back.
fn named(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(REQUEST_ID)?;
    let is_text = given.to_str().is_ok();
    (is_text && (1..=MAX_REQUEST_ID).contains(&given.len())).then(|| given.clone())
}

fn with_id(mut response: Response, given: Option<HeaderValue>) -> Response {
    let own = || {
        let id = response.extensions().get::<RequestId>();
        let id = id.map_or_else(random_id, |RequestId(id)| id.clone());
        HeaderValue::from_str(&id).ok()
    };
    if let Some(name) = given.or_else(own) {
        response.headers_mut().insert(REQUEST_ID, name);
    }
    response
}

fn random_id() -> String {
    let mut random = [0; 16];
    // Without a source of entropy requests have one name, and nothing else is wrong.
    let _ = getrandom::fill(&mut random);
    request_id(random)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
