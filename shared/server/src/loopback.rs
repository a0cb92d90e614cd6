//! Ports that listen on loopback alone, which a web page in a browser on this machine must not reach.
//!
//! A browser sends the page's origin with what it posts, and the name that the page's owner has pointed to this machine
//! stands in `Host`.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Uri};

/// Returns the reason to refuse a request to a loopback port, if a web page sent it.
pub fn refusal(uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
    let host = uri.host().or_else(|| text(headers, &HOST));
    if !host.is_none_or(is_local) {
        return Some("Host is another machine's; this server listens on loopback alone");
    }
    let origin = text(headers, &ORIGIN);
    let page = origin.map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    if !page.is_none_or(is_local) {
        return Some(
            "Origin is a web page's; this server listens on loopback alone, and answers no pages of others",
        );
    }
    None
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    // What is not ASCII names no machine.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Whether `host`, with a port or without, is this machine by an address or by its name.
fn is_local(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = without_port.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_few_names() {
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
}
