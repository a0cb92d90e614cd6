//! What a service asks of every request before it looks at it.

use std::num::NonZeroU32;
use std::sync::Arc;

use tonic::service::Interceptor;
use tonic::{Request, Status};

use super::Tokens;
use crate::log_throttle::LogThrottle;

/// The header a token comes in.
pub(super) const HEADER: &str = "authorization";

/// Who sent a request, in its extensions: there if the service asks for tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The name before the token, if there is one.
    pub tenant: Option<Arc<str>>,
    /// A number for the token, which reveals nothing of it and stays the same when the file is read again.
    pub token: u64,
    /// Most requests under way that show the token, if its line says so.
    pub max_requests: Option<NonZeroU32>,
}

/// Refuses requests that show no token, or one that is not known.
#[derive(Clone, Debug)]
pub struct Guard {
    pub(super) requested: Option<Tokens>,
    pub(super) refused: Arc<LogThrottle>,
}

impl Guard {
    fn refusal(&self, request: &Request<()>, setting: &str, why: &str) -> Status {
        if let Some(others) = self.refused.passes() {
            let client = request.remote_addr();
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

impl Interceptor for Guard {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        // Nobody behind this needs it.
        let header = request.metadata_mut().remove(HEADER);
        let Some(tokens) = self.requested.as_ref().map(Tokens::get) else {
            return Ok(request);
        };
        let client = match header.as_ref().map(|header| bearer(header.as_bytes())) {
            None => Err("no token was shown"),
            Some(None) => Err("the authorization shown is not of the kind Bearer"),
            Some(Some(shown)) => tokens.find(shown).ok_or("the token shown is not known"),
        };
        let client = client.map_err(|why| self.refusal(&request, tokens.setting, why))?;
        request.extensions_mut().insert(client);
        Ok(request)
    }
}

/// The token in a header's value.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}
