//! What a service asks of every request before it looks at it.

use std::sync::Arc;

use tonic::service::Interceptor;
use tonic::{Request, Status};

use super::Tokens;
use crate::seldom::Seldom;

/// The header a token comes in.
pub(super) const HEADER: &str = "authorization";

/// Who sent a request, in its extensions: there if the service asks for tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The name before the token, if there is one.
    pub tenant: Option<Arc<str>>,
}

/// Refuses requests that show no token, or one that is not known.
#[derive(Clone, Debug)]
pub struct Guard {
    asked: Option<Tokens>,
    refused: Arc<Seldom>,
}

impl Guard {
    pub(super) fn new(asked: Option<Tokens>) -> Self {
        Self {
            asked,
            refused: Arc::default(),
        }
    }

    fn refusal(&self, request: &Request<()>, tokens: &Tokens, why: &str) -> Status {
        if let Some(others) = self.refused.passes() {
            let client = request.remote_addr();
            let setting = tokens.setting;
            tracing::warn!(
                ?client,
                why,
                others,
                "request refused, see auth.{setting}; `others` were refused since the last such line"
            );
        }
        let hint = match tokens.setting {
            "client_tokens_file" => "--token-file, auth.token_file",
            _ => "auth.peer_token_file",
        };
        Status::unauthenticated(format!(
            "{why}; `authorization: Bearer TOKEN` must show a token of the file that this service's \
             auth.{} names ({hint})",
            tokens.setting
        ))
    }
}

impl Interceptor for Guard {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        // Nobody behind this needs it.
        let header = request.metadata_mut().remove(HEADER);
        let Some(tokens) = &self.asked else {
            return Ok(request);
        };
        let Some(header) = header else {
            return Err(self.refusal(&request, tokens, "no token was shown"));
        };
        let Some(shown) = bearer(header.as_bytes()) else {
            let why = "the authorization shown is not of the kind Bearer";
            return Err(self.refusal(&request, tokens, why));
        };
        let Some(client) = tokens.now().find(shown) else {
            return Err(self.refusal(&request, tokens, "the token shown is not known"));
        };
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
