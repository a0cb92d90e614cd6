//! Ports that listen on loopback alone, which a web page in a browser on this machine must not reach.
//!
//! A browser sends the page's origin with what it posts, and the name that the page's owner has pointed to this machine
//! stands in `Host`. What an operator trusts is answered all the same.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri};

/// Why a request to a loopback port is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrowserRefusal {
    /// `Host` is not trusted.
    #[error("Host is another machine's, and this server listens on loopback alone")]
    Host,
    /// `Origin` is not trusted.
    #[error("Origin is a web page's, and this server listens on loopback alone")]
    Origin,
}

/// Whom a loopback port answers beside this machine itself.
#[derive(Clone, Debug, Default)]
pub struct Trusted {
    /// Names that a request may give as its host, with a port or without: those that proxies on this machine pass on.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask, such as `https://chat.example`; `*` is any.
    pub origins: Vec<String>,
}

impl Trusted {
    /// Returns the reason to refuse a request to a loopback port, if a web page that is not trusted may have sent it.
    pub fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<BrowserRefusal> {
        let authority = uri.authority().map(Authority::as_str);
        let host = authority.or_else(|| text(headers, &HOST));
        if !host.is_none_or(|host| self.is_host(host)) {
            return Some(BrowserRefusal::Host);
        }
        if !text(headers, &ORIGIN).is_none_or(|origin| self.is_origin(origin)) {
            return Some(BrowserRefusal::Origin);
        }
        None
    }

    /// Returns whether `host`, with a port or without, is this machine or trusted.
    fn is_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let is_named = |trusted: &String| {
            trusted.eq_ignore_ascii_case(name) || trusted.eq_ignore_ascii_case(host)
        };
        is_local(name) || self.hosts.iter().any(is_named)
    }

    fn is_origin(&self, origin: &str) -> bool {
        let is_named = |trusted: &String| trusted == "*" || trusted.eq_ignore_ascii_case(origin);
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        self.is_host(host) || self.origins.iter().any(is_named)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    // What is not ASCII names no machine.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// `host` without a port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns whether `name` is this machine, by an address or by its name.
pub(crate) fn is_local(name: &str) -> bool {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_few_names() {
        let is_local = |host| Trusted::default().is_host(host);
        for host in [
            "localhost",
            "LOCALHOST:8000",
            "127.0.0.1:8000",
            "127.9.9.9",
            "[::1]:8000",
            "[::1]",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8000",
            "10.0.0.1:8000",
            "",
            "null",
            "?",
            "[::2]:1",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn what_is_trusted_is_answered_and_what_only_looks_like_it_is_not() {
        let trusted = Trusted {
            hosts: vec!["llm.example".to_owned(), "other.example:8443".to_owned()],
            origins: vec!["https://chat.example".to_owned()],
        };
        let refusal = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a value"));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().expect("a value"));
            }
            trusted.refusal(&Uri::from_static("/v1/models"), &headers)
        };
        for (host, origin) in [
            ("localhost", None),
            ("llm.example", None),
            ("LLM.example:80", None),
            ("other.example:8443", None),
            ("localhost", Some("https://chat.example")),
            // A page of the proxy itself.
            ("llm.example", Some("https://llm.example")),
        ] {
            assert_eq!(refusal(host, origin), None, "{host} {origin:?}");
        }
        for (host, origin, refused) in [
            ("evil.example", None, BrowserRefusal::Host),
            ("llm.example.evil.example", None, BrowserRefusal::Host),
            ("other.example", None, BrowserRefusal::Host),
            (
                "evil.example",
                Some("https://chat.example"),
                BrowserRefusal::Host,
            ),
            (
                "localhost",
                Some("https://evil.example"),
                BrowserRefusal::Origin,
            ),
            (
                "localhost",
                Some("http://chat.example"),
                BrowserRefusal::Origin,
            ),
            ("localhost", Some("null"), BrowserRefusal::Origin),
        ] {
            assert_eq!(refusal(host, origin), Some(refused), "{host} {origin:?}");
        }
    }

    /// As HTTP/2 has it, and clients that take the server for a proxy.
    #[test]
    fn the_host_of_an_address_precedes_the_header() {
        let trusted = Trusted {
            hosts: vec!["other.example:8443".to_owned()],
            ..Trusted::default()
        };
        for (address, refused) in [
            ("https://other.example:8443/v1/models", None),
            ("https://localhost/v1/models", None),
            (
                "https://other.example/v1/models",
                Some(BrowserRefusal::Host),
            ),
            (
                "https://localhost@evil.example/v1/models",
                Some(BrowserRefusal::Host),
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost".parse().expect("a value"));
            let address = Uri::from_static(address);
            assert_eq!(trusted.refusal(&address, &headers), refused, "{address}");
        }
    }

    #[test]
    fn any_origin_can_be_trusted_and_the_host_is_looked_at_all_the_same() {
        let trusted = Trusted {
            origins: vec!["*".to_owned()],
            ..Trusted::default()
        };
        assert!(trusted.is_origin("https://evil.example") && trusted.is_origin("null"));
        assert!(!trusted.is_host("evil.example") && !trusted.is_host("*"));
    }
}
