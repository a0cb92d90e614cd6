//! What a service asks of every request before it looks at it.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tonic::Status;
use tonic::codegen::http::{Extensions, HeaderMap, header};
use tonic::transport::server::TcpConnectInfo;

use super::ReloadedTokens;
use super::guesses::{Guesses, Pause};
use crate::log_throttle::LogThrottle;

/// Who sent a request, in its extensions: there if the service asks for tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHolder {
    /// The name before the token, if there is one.
    pub tenant: Option<Arc<str>>,
    /// A number for the token, which reveals nothing of it and stays the same when the file is read again.
    pub token: u64,
    /// Most requests under way that show the token, if its line says so.
    pub max_requests: Option<NonZeroU32>,
    /// How much may be used in a minute by those that show the token.
    pub rates: RateLimits,
}

/// Refuses requests that show no token, or one that is not known.
#[derive(Clone, Debug)]
pub struct Guard {
    pub(super) requested: Option<ReloadedTokens>,
    pub(super) refused: Arc<LogThrottle>,
    pub(super) guesses: Arc<Guesses>,
}

impl Guard {
    /// Removes the token from `headers` and looks it up; `extensions` hold the client's address. Returns the client;
    /// none if the service requires no tokens.
    ///
    /// # Errors
    /// [`AuthRefusal`] if it requires one and the request shows none that is known.
    pub fn check(
        &self,
        headers: &mut HeaderMap,
        extensions: &Extensions,
    ) -> Result<Option<TokenHolder>, AuthRefusal> {
        // Nobody behind this needs it.
        let shown = headers.remove(header::AUTHORIZATION);
        let Some(tokens) = self.requested.as_ref().map(|tokens| tokens.get()) else {
            return Ok(None);
        };
        let (why, is_guess) = match shown.as_ref().map(|shown| bearer(shown.as_bytes())) {
            None => ("no token was shown", false),
            Some(None) => ("the authorization shown is not of the kind Bearer", false),
            Some(Some(shown)) => match tokens.find(shown) {
                Some(client) => return Ok(Some(client)),
                None => ("the token shown is not known", true),
            },
        };
        let info = extensions.get::<TcpConnectInfo>();
        let client = info.and_then(TcpConnectInfo::remote_addr);
        let pause = is_guess.then(|| self.guesses.pause(client)).flatten();
        let status = self.refusal(client, tokens.setting, why);
        Err(AuthRefusal { status, pause })
    }

    fn refusal(&self, client: Option<SocketAddr>, setting: &str, why: &str) -> Status {
        if let Some(others) = self.refused.passes() {
            tracing::warn!(
                ?client,
                why,
                others,
                "request refused, see auth.{setting}; `others` were refused since the last such line"
            );
        }
        let hint = match setting {
            "client_tokens_file" => "--token-file, auth.token_file",
            _ => "auth.peer_token_file",
        };
        Status::unauthenticated(format!(
            "{why}; `authorization: Bearer TOKEN` must show a token of the file that this service's \
             auth.{setting} names ({hint})"
        ))
    }
}

/// Refuses calls of gRPC that `guard` does not let in, as a middleware before all services of a port.
pub async fn guard_calls(State(guard): State<Guard>, call: Request, next: Next) -> Response {
    let (mut parts, body) = call.into_parts();
    match guard.check(&mut parts.headers, &parts.extensions) {
        Ok(holder) => {
            if let Some(holder) = holder {
                parts.extensions.insert(holder);
            }
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => {
            // It is not read, and let go before its answer is put off.
            drop(body);
            refusal.answer().await.into_http()
        }
    }
}

/// The refusal of a request without a valid token.
#[derive(Debug)]
pub struct AuthRefusal {
    pub(super) status: Status,
    pause: Option<Pause>,
}

impl AuthRefusal {
    /// Returns the status, after a delay if a wrong token was shown, so that guessing takes time.
    pub async fn answer(self) -> Status {
        if let Some(pause) = self.pause {
            pause.end().await;
        }
        self.status
    }
}

/// Returns the token in a header's value.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

/// How much a token may use in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Most requests that begin in a minute.
    pub requests: Option<NonZeroU32>,
    /// Most tokens in a minute, of prompts and outputs together.
    pub tokens: Option<NonZeroU32>,
}
