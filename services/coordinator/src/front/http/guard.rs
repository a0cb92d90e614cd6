//! What is asked of every request before it is read: who sent it, from where, and in which form.

use std::time::Duration;

use axum::body::{HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use server::auth::{Client, Guard};
use server::loopback;
use server::request_id::request_id;
use tonic::service::Interceptor;
use wire::status::overloaded;

use super::error::ApiError;
use super::state::Front;
use crate::front::MAX_REQUEST_BYTES;

/// The header that names a request; a client's own name is given back.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest name of a request that is given back, in bytes.
const MAX_REQUEST_ID: usize = 128;

/// How long a client should wait for whose body there is no room.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Who sent a request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// There if clients must show tokens.
    pub(super) client: Option<Client>,
}

/// The identifier of a request in logs and traces. A handler puts it into the extensions of its response.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Refuses requests of web pages to a port of this machine alone: a page that is open in a browser here must not
/// reach it.
pub(super) async fn local_only(request: Request, next: Next) -> Response {
    if let Some(problem) = loopback::refusal(request.uri(), request.headers()) {
        return ApiError::http(StatusCode::FORBIDDEN, problem).into_response();
    }
    next.run(request).await
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    // What is not ASCII names no machine.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Lets requests in that show a token, where clients must. Each response has an `x-request-id`: the client's own, or else
/// the identifier in logs and traces, or else, for a request that was refused early, a new one.
pub(super) async fn authorised(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let name = named(request.headers());
    let client = match client(guard, request.headers_mut()) {
        Ok(client) => client,
        Err(error) => return with_id(error.into_response(), name),
    };
    let is_json = request.method() != Method::POST || is_json(request.headers());
    request.extensions_mut().insert(Caller { client });
    if !is_json {
        let problem = "Content-Type must be application/json";
        let error = ApiError::http(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem);
        return with_id(error.into_response(), name);
    }
    with_id(next.run(request).await, name)
}

/// Reads the body of a request whole before it is handled, within its time, its bytes, and what all bodies may take.
pub(super) async fn received(State(front): State<Front>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    // A body of unknown length may become as long as is allowed at all.
    let length = body.size_hint().upper();
    let length = length.unwrap_or(MAX_REQUEST_BYTES as u64);
    let too_large = || {
        let problem =
            format!("a body of more than {MAX_REQUEST_BYTES} bytes, or one that was cut short");
        ApiError::http(StatusCode::PAYLOAD_TOO_LARGE, problem).into_response()
    };
    if length > MAX_REQUEST_BYTES as u64 {
        return too_large();
    }
    let Ok(_room) = front
        .receiving
        .try_acquire_many(length.div_ceil(1 << 10) as u32)
    else {
        let full = overloaded("no room for the body of another request", RETRY_AFTER);
        return ApiError::from(full).into_response();
    };
    let reading = to_bytes(body, MAX_REQUEST_BYTES);
    match tokio::time::timeout(front.receive_timeout, reading).await {
        Ok(Ok(body)) => next.run(Request::from_parts(parts, body.into())).await,
        Ok(Err(_)) => too_large(),
        Err(_) => {
            let problem = format!("the body did not come within {:?}", front.receive_timeout);
            ApiError::http(StatusCode::REQUEST_TIMEOUT, problem).into_response()
        }
    }
}

/// Who shows a token in `headers`, from which it is taken.
fn client(mut guard: Guard, headers: &mut HeaderMap) -> Result<Option<Client>, ApiError> {
    let mut shown = tonic::Request::new(());
    if let Some(header) = headers.remove(AUTHORIZATION)
        && let Ok(header) = header.as_bytes().try_into()
    {
        shown.metadata_mut().insert("authorization", header);
    }
    let passed = guard.call(shown)?;
    Ok(passed.extensions().get::<Client>().cloned())
}

/// The client's name for a request, if it can be given back.
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
    let kind = text(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
