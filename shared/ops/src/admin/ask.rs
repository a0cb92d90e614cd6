//! Asking another process's admin port.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Uri};
use net::Credentials;
use net::channel::{self, ChannelConfig, ChannelError};
use net::fault::in_one_line;
use tower::ServiceExt;

use super::http::{BUT, NOT_READY, READY};

/// How long an answer may take, the connection included.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// What an admin port said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it is ready.
    pub is_ready: bool,
    /// One line why.
    pub line: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The URL names no admin port.
    #[error(transparent)]
    Url(#[from] ChannelError),
    /// It asks for what admin ports do not speak.
    #[error("{url}: admin ports speak no TLS; write http://")]
    Tls {
        /// What was asked.
        url: String,
    },
    /// Nobody answers there.
    #[error(
        "{url} does not answer: {reason}; is the process running, and is this its admin port (admin.listen)?"
    )]
    Unreachable {
        /// Where.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// Nothing came in time.
    #[error("{url} does not answer within {} s: the process hangs, or this is no admin port (admin.listen)", TIMEOUT.as_secs())]
    Late {
        /// Where.
        url: String,
    },
    /// Whoever answers is no admin port.
    #[error(
        "{url} answers /readyz with HTTP {status} and says nothing of readiness: it is no admin port \
         (admin.listen says where that is)"
    )]
    Foreign {
        /// Where.
        url: String,
        /// What it says.
        status: u16,
    },
}

/// Asks the admin port at `url` whether its process is ready.
///
/// # Errors
/// [`AskError`] quoting the URL.
pub async fn readiness(url: &str) -> Result<Readiness, AskError> {
    if url.starts_with("https://") {
        let url = url.to_owned();
        return Err(AskError::Tls { url });
    }
    let config = ChannelConfig {
        connect_timeout_ms: TIMEOUT.as_millis() as u64,
    };
    let channel = channel::connect(url, &config, &Credentials::default())?;
    let unreachable = |reason: String| AskError::Unreachable {
        url: url.to_owned(),
        reason,
    };
    let requested = async {
        let mut request = Request::new(tonic::body::Body::empty());
        *request.uri_mut() = Uri::from_static("/readyz");
        let answer = channel.oneshot(request).await;
        let answer = answer.map_err(|error| unreachable(in_one_line(&*error)))?;
        let status = answer.status().as_u16();
        let bytes = to_bytes(Body::new(answer.into_body()), MAX_ANSWER_BYTES)
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        let line = String::from_utf8_lossy(&bytes).trim().to_owned();
        // Other programs answer with 200 too.
        let is_ready = match status {
            200 if says_ready(&line) => true,
            503 if line.starts_with(NOT_READY) => false,
            status => {
                let url = url.to_owned();
                return Err(AskError::Foreign { url, status });
            }
        };
        Ok(Readiness { is_ready, line })
    };
    let late = |_| AskError::Late {
        url: url.to_owned(),
    };
    tokio::time::timeout(TIMEOUT, requested)
        .await
        .map_err(late)?
}

/// Returns whether that is the line of a process that is ready, with what is wrong all the same.
fn says_ready(line: &str) -> bool {
    let rest = line.strip_prefix(READY);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(BUT))
}
