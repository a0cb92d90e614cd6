//! The server that is measured, over HTTP/1.1.
//!
//! No redirect is followed, and no proxy of the environment is used. What is read of an answer is bounded in bytes and in
//! time.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use net::bounded::{self, MAX_SETTINGS_BYTES};
use net::connector::Connector;

use super::answer::Answer;
use super::failure::RequestFailure;
use super::reading;

/// Longest time that a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(10);

/// Most bytes of another answer: of lists of models, and of metrics.
const LONGEST_ANSWER: usize = 16 << 20;

/// Most bytes that are read of a refusal.
const LONGEST_REFUSAL: usize = 64 << 10;

/// A server, with connections to it that wait to be used again.
#[derive(Debug)]
pub(super) struct Endpoint {
    url: String,
    client: HttpClient<Connector, Full<Bytes>>,
    authorization: Option<HeaderValue>,
    limit: Duration,
}

impl Endpoint {
    /// Connects nowhere yet. `flag` names the flag that the address is from; a request may take `limit`.
    ///
    /// # Errors
    /// If the address is none, or the certificates of `ca_file` cannot be used.
    pub(super) fn new(
        flag: &str,
        url: &str,
        ca_file: Option<&Path>,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let uri = checked(url).with_context(|| format!("{flag}: {url}"))?;
        let authorities = ca_file.map(|file| ("--ca-file", file));
        let connector = Connector::to_server(&uri, authorities, b"http/1.1", CONNECTING)?;
        let client = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            client,
            authorization: None,
            limit,
        })
    }

    /// Returns the same, which shows the key in `file` as `Authorization: Bearer`.
    ///
    /// # Errors
    /// If the file cannot be read or holds no key.
    pub(super) fn with_key(self, file: &Path) -> anyhow::Result<Self> {
        let key = bounded::text_file(file, MAX_SETTINGS_BYTES);
        let key =
            key.with_context(|| format!("--api-key-file: {} cannot be read", file.display()))?;
        let key = key.trim();
        ensure!(
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()),
            "--api-key-file: {} must hold one key of visible ASCII characters, and nothing else",
            file.display()
        );
        let mut value = HeaderValue::try_from(format!("Bearer {key}"))?;
        value.set_sensitive(true);
        Ok(Self {
            authorization: Some(value),
            ..self
        })
    }

    /// Returns what stands at `path` behind the address.
    ///
    /// # Errors
    /// If there is no whole answer of success in time.
    pub(super) async fn get(&self, path: &str) -> Result<Bytes, RequestFailure> {
        let url = format!("{}{path}", self.url);
        self.in_time(&url, async {
            let response = self.send(&url, Method::GET, Bytes::new()).await?;
            let body = Limited::new(response.into_body(), LONGEST_ANSWER);
            let body = body
                .collect()
                .await
                .map_err(|error| RequestFailure::Broken {
                    url: url.clone(),
                    why: error.to_string(),
                })?;
            Ok(body.to_bytes())
        })
        .await
    }

    /// Posts `body` to `path` and reads the stream that answers it.
    ///
    /// # Errors
    /// If there is no whole answer of success in time.
    pub(super) async fn stream(&self, path: &str, body: Bytes) -> Result<Answer, RequestFailure> {
        let url = format!("{}{path}", self.url);
        self.in_time(&url, async {
            let sent = Instant::now();
            let response = self.send(&url, Method::POST, body).await?;
            reading::read(&url, response.into_body(), sent).await
        })
        .await
    }

    async fn in_time<T>(
        &self,
        url: &str,
        asking: impl Future<Output = Result<T, RequestFailure>>,
    ) -> Result<T, RequestFailure> {
        let answered = tokio::time::timeout(self.limit, asking).await;
        answered.unwrap_or_else(|_| {
            Err(RequestFailure::Late {
                url: url.to_owned(),
                limit: self.limit,
            })
        })
    }

    /// Sends a request, and returns the response if it is one of success.
    async fn send(
        &self,
        url: &str,
        method: Method,
        body: Bytes,
    ) -> Result<Response<Incoming>, RequestFailure> {
        let unreachable = |why: String| RequestFailure::Unreachable {
            url: url.to_owned(),
            why,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .header(CONTENT_TYPE, "application/json")
            .header(
                USER_AGENT,
                concat!("outrider-bench/", env!("CARGO_PKG_VERSION")),
            );
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| unreachable(error.to_string()))?;
        let sent = self.client.request(request).await;
        let response = sent.map_err(|error| unreachable(cause(error)))?;
        let status = response.status().as_u16();
        if status == 200 {
            return Ok(response);
        }
        let words = Limited::new(response.into_body(), LONGEST_REFUSAL).collect();
        let words = words.await.map(Collected::to_bytes);
        Err(RequestFailure::refused(
            url,
            status,
            &words.unwrap_or_default(),
        ))
    }
}

fn checked(url: &str) -> anyhow::Result<Uri> {
    let is_http = ["http://", "https://"]
        .iter()
        .any(|scheme| url.starts_with(scheme));
    ensure!(is_http, "must begin with http:// or https://");
    let uri: Uri = url.parse().map_err(|_| anyhow!("is no URL"))?;
    let authority = uri.authority().context("has no host")?;
    ensure!(
        !authority.as_str().contains('@') && uri.query().is_none(),
        "must have neither a user nor a query; --api-key-file names a file with a key"
    );
    Ok(uri)
}

/// Returns what is behind an error of the client, whose own words say only that it is one.
fn cause(error: hyper_util::client::legacy::Error) -> String {
    let error = anyhow::Error::new(error);
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some repeat what is behind them.
        if causes.last().is_none_or(|last| !last.ends_with(&cause)) {
            causes.push(cause);
        }
    }
    if causes.is_empty() {
        error.to_string()
    } else {
        causes.join(": ")
    }
}
