//! Addresses that a process listens on.

use std::net::SocketAddr;

use net::listen::Listen;

use super::{ConfigProblem, ServeRole};
use crate::config::Config;

/// Returns where the services of `role` listen, each with its setting.
pub(crate) fn of_services(config: &Config, role: ServeRole) -> Vec<(&'static str, Listen)> {
    let mut found = Vec::new();
    if role.drafts(config) {
        found.push(("drafter.listen", config.drafter.listen));
    }
    if role.has_verifier() {
        found.push(("verifier.listen", config.verifier.listen));
    }
    if role.has_coordinator() {
        found.push(("coordinator.listen", config.coordinator.listen));
        let http = config.coordinator.http.listen.listen();
        found.extend(http.map(|listen| ("coordinator.http.listen", listen)));
    }
    found
}

/// Returns the addresses that two ports of one process would have. A default address of the OpenAI API that is taken is
/// done without.
pub(super) fn shared(config: &Config, role: ServeRole, is_http_chosen: bool) -> Vec<ConfigProblem> {
    let admin = config.admin.listen.listen();
    let mut ports = Vec::from_iter(admin.map(|listen| ("admin.listen", listen)));
    ports.extend(of_services(config, role));
    ports.retain(|(key, _)| is_http_chosen || *key != "coordinator.http.listen");
    let mut problems = Vec::new();
    for (index, (key, listen)) in ports.iter().enumerate() {
        let twin = ports[..index]
            .iter()
            .find(|(_, other)| overlap(other.address(), listen.address()));
        problems.extend(twin.map(|(other, of_other)| ConfigProblem {
            key: (*key).to_owned(),
            problem: format!(
                "{key}: {listen} is taken by {other} ({of_other}), which the same process listens on; give one of \
                 them another port"
            ),
        }));
    }
    problems
}

/// Returns whether only one of the two can be listened on. Port 0 is any that is free.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (is_any || one.ip() == other.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_overlap_where_both_cannot_be_bound() {
        let overlap = |one: &str, other: &str| {
            overlap(
                one.parse().expect("an address"),
                other.parse().expect("an address"),
            )
        };
        assert!(overlap("127.0.0.1:1", "127.0.0.1:1"));
        assert!(overlap("0.0.0.0:1", "127.0.0.1:1"));
        assert!(!overlap("127.0.0.1:1", "127.0.0.1:2"));
        assert!(!overlap("127.0.0.1:1", "127.0.0.2:1"));
        assert!(!overlap("127.0.0.1:0", "127.0.0.1:0"));
    }
}
