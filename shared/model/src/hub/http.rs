//! Requests to the hub, with the token where it belongs.

use std::time::Duration;

use ureq::http::{HeaderMap, Response, StatusCode, Uri, header};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

use super::{HubError, HubSettings, HubToken, trust};

const CONNECTING: Duration = Duration::from_secs(10);
/// Longest silence, before an answer and within one.
const SILENCE: Duration = Duration::from_secs(60);
/// Redirects within one server that are followed.
const MAX_REDIRECTS: usize = 5;

/// Hash of a file that is kept elsewhere.
pub(super) const LINKED_ETAG: &str = "x-linked-etag";

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// The headers.
    Head,
    /// The body, without its first bytes.
    GetFrom(u64),
}

/// A client of one hub.
///
/// The token goes to the endpoint's host alone. Redirects to another host are left to the caller, who
/// asks there without it: the client in hf-hub 0.5 sends the token along when it asks such a host for the
/// size of a file.
pub(super) struct Http {
    agent: Agent,
    pub(super) endpoint: String,
    token: Option<HubToken>,
}

impl Http {
    /// Builds the client.
    ///
    /// # Errors
    /// If the CAs that the settings name cannot be read.
    pub(super) fn new(settings: &HubSettings) -> Result<Self, HubError> {
        let mut tls = TlsConfig::builder();
        // Nothing is read for a hub without TLS, or for one that is not asked.
        if !settings.offline && settings.endpoint.starts_with("https://") {
            tls = tls.root_certs(trust::roots(settings.ca_file.as_ref())?);
            trust::warn_of_proxies(|name| std::env::var(name).ok());
        }
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .max_redirects(0)
            .http_status_as_error(false)
            // A compressed answer would have no length, and could not be resumed.
            .accept_encoding("identity")
            .user_agent(concat!("outrider/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECTING))
            .timeout_connect(Some(CONNECTING))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .build()
            .new_agent();
        Ok(Self {
            agent,
            endpoint: settings.endpoint.clone(),
            token: settings.token.clone(),
        })
    }

    /// Asks for `url`, and follows redirects within its server. One to another is returned as it is, and so
    /// is one that tells of a large file.
    ///
    /// # Errors
    /// If there is no answer.
    pub(super) fn ask(&self, url: &str, ask: Ask) -> Result<Response<Body>, HubError> {
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.ask_once(&url, ask)?;
            // What is told of a file stands beside the redirect to its bytes.
            let tells_all = ask == Ask::Head && response.headers().contains_key(LINKED_ETAG);
            match redirect(&url, &response)? {
                Some(target) if same_server(&url, &target) && !tells_all => url = target,
                _ => return Ok(response),
            }
        }
        Err(HubError::answer(&url, "too many redirects"))
    }

    fn ask_once(&self, url: &str, ask: Ask) -> Result<Response<Body>, HubError> {
        let mut request = match ask {
            Ask::Head => self.agent.head(url),
            Ask::GetFrom(_) => self.agent.get(url),
        };
        if let Ask::GetFrom(from @ 1..) = ask {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        if let Some(token) = &self.token
            && same_server(url, &self.endpoint)
        {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.secret));
        }
        request.call().map_err(|error| {
            let endpoint = server(url).unwrap_or_else(|| url.to_owned());
            let reason = error.to_string();
            if reason.contains("certificate") {
                return HubError::NotBelieved { endpoint, reason };
            }
            HubError::Unreachable { endpoint, reason }
        })
    }

    /// The error for a refused request, if `response` is one. `missing` makes that for a 404.
    pub(super) fn check(
        &self,
        what: &str,
        url: &str,
        response: &Response<Body>,
        missing: impl FnOnce() -> HubError,
    ) -> Result<(), HubError> {
        let status = response.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(HubError::Denied {
                what: what.to_owned(),
                endpoint: self.endpoint.clone(),
                status: status.as_u16(),
                said: text(response.headers(), "x-error-message")
                    .map_or_else(String::new, |said| format!(", {said}")),
                token_origin: self.token.as_ref().map(|token| token.origin.clone()),
            }),
            StatusCode::NOT_FOUND => Err(missing()),
            status if status.is_client_error() || status.is_server_error() => {
                Err(HubError::answer(url, format!("the answer is {status}")))
            }
            _ => Ok(()),
        }
    }
}

/// Where `response`, the answer to `url`, sends us, as a whole address.
pub(super) fn redirect(url: &str, response: &Response<Body>) -> Result<Option<String>, HubError> {
    if !response.status().is_redirection() {
        return Ok(None);
    }
    let Some(target) = text(response.headers(), "location") else {
        return Err(HubError::answer(url, "a redirect to nowhere"));
    };
    if target.starts_with("http://") || target.starts_with("https://") {
        return Ok(Some(target.to_owned()));
    }
    let server = server(url).filter(|_| target.starts_with('/') && !target.starts_with("//"));
    let Some(server) = server else {
        let problem = format!("a redirect to {target:?}, which is no address");
        return Err(HubError::answer(url, problem));
    };
    Ok(Some(format!("{server}{target}")))
}

/// The value of a header, if it is text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Scheme, host and port of an address.
pub(super) fn server(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?))
}

fn same_server(a: &str, b: &str) -> bool {
    let a = server(a);
    a.is_some() && a == server(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_differ_by_scheme_host_and_port() {
        assert!(same_server("http://hub:80/a", "http://hub:80"));
        for other in [
            "https://hub:80",
            "http://hub:81",
            "http://hub.evil:80",
            "http://x@hub:80",
        ] {
            assert!(!same_server("http://hub:80/a", other), "{other}");
        }
    }
}
