//! The limit of open files. Each connection is an open file, and a process that has reached the limit can answer on no
//! port.
//!
//! The soft limit is raised to the hard one at the start, and what it leaves is shared out among the ports, so that clients
//! that fill one port take no files from another, nor from the admin port.

use std::num::NonZeroUsize;

use net::listen::ServerConfig;

use crate::admin::MAX_CONNECTIONS;

/// Files that a process opens itself: models while they load, certificates, tokens, listeners, and connections that are
/// about to be refused.
const OWN: usize = 128;

/// Files that are kept from the ports of the services.
pub const KEPT: usize = OWN + MAX_CONNECTIONS;

/// Fewest connections that a port keeps, however low the limit is.
const FEWEST: usize = 8;

/// Highest limit that is set: some systems report an infinite limit and refuse to set one as high.
const MOST: u64 = 1 << 20;

/// Raises the soft limit of open files to the hard one, and returns the limit in effect; none if there is no limit, or the
/// system has none that this program can read.
pub fn raise() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let soft = limit.current?;
        let wanted = limit.maximum.unwrap_or(MOST).min(MOST);
        if soft >= wanted {
            return Some(soft);
        }
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => Some(wanted),
            Err(error) => {
                tracing::warn!(%error, soft, wanted, "the limit of open files cannot be raised");
                Some(soft)
            }
        }
    }
    #[cfg(not(unix))]
    None
}

/// The ports of one server, which share the limit.
pub struct PortGroup<'a> {
    /// The server's configuration; each of its ports takes `max_connections`.
    pub server: &'a mut ServerConfig,
    /// Number of its ports.
    pub count: usize,
}

/// Lowers [`ServerConfig::max_connections`] of `ports` in proportion if `limit` open files do not suffice for all of them
/// beside the admin port, the process's own files and connections to `peers`. Returns the largest number that a port
/// keeps, if it lowered any.
pub fn share(limit: u64, peers: usize, ports: &mut [PortGroup<'_>]) -> Option<usize> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // A peer may be connected to twice: for work, and to see whether it is there.
    let kept = KEPT + 2 * peers;
    let left = limit.saturating_sub(kept);
    let wanted = ports.iter().fold(0_usize, |sum, port| {
        sum.saturating_add(port.server.max_connections.get().saturating_mul(port.count))
    });
    if wanted <= left {
        return None;
    }
    let mut largest = 0;
    for port in ports {
        let most = port.server.max_connections.get();
        let part = (most as u128 * left as u128 / wanted as u128) as usize;
        let part = part.max(FEWEST.min(most));
        largest = largest.max(part);
        if let Some(part) = NonZeroUsize::new(part) {
            port.server.max_connections = part;
        }
    }
    Some(largest)
}

/// Raises the limit, shares it out among `ports`, and logs a warning if they get less than their settings say.
pub fn fit(peers: usize, ports: &mut [PortGroup<'_>]) {
    let Some(limit) = raise() else {
        return;
    };
    if let Some(most) = share(limit, peers, ports) {
        tracing::warn!(
            limit,
            most,
            "the system allows this process too few open files for server.max_connections: a port takes `most` \
             connections at most; raise the hard limit (ulimit -Hn, LimitNOFILE= of systemd, --ulimit of containers)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(max_connections: usize) -> ServerConfig {
        ServerConfig {
            max_connections: NonZeroUsize::new(max_connections).unwrap(),
            ..ServerConfig::default()
        }
    }

    fn shared(limit: u64, peers: usize, servers: &[(usize, usize)]) -> Option<Vec<usize>> {
        let mut configs: Vec<_> = servers.iter().map(|&(most, _)| server(most)).collect();
        let counts = servers.iter().map(|&(_, count)| count);
        let mut ports: Vec<_> = (configs.iter_mut().zip(counts))
            .map(|(server, count)| PortGroup { server, count })
            .collect();
        let largest = share(limit, peers, &mut ports)?;
        let left: Vec<_> = configs
            .iter()
            .map(|server| server.max_connections.get())
            .collect();
        assert_eq!(left.iter().max(), Some(&largest));
        Some(left)
    }

    #[test]
    fn where_there_are_files_enough_nothing_is_cut() {
        let kept = KEPT as u64;
        assert_eq!(shared(kept + 2_048, 0, &[(1_024, 2)]), None);
        assert_eq!(shared(u64::MAX, 9, &[(1_024, 2), (1_024, 1)]), None);
        assert_eq!(shared(kept + 2_047, 0, &[(1_024, 2)]), Some(vec![1_023]));
        // Every peer takes its own.
        assert_eq!(shared(kept + 2_048, 2, &[(1_024, 2)]), Some(vec![1_022]));
    }

    #[test]
    fn all_ports_together_leave_files_to_the_process_itself() {
        let servers = [(1_024, 2), (512, 1), (1_024, 1)];
        for limit in [256, 512, 1_024, 2_048] {
            let left = shared(limit, 0, &servers).expect("too few");
            let taken = 2 * left[0] + left[1] + left[2];
            let kept = limit as usize - taken;
            assert!(kept >= KEPT, "{kept} of {limit}");
            assert!(left[1] <= left[0] / 2 + 1, "in proportion: {left:?}");
        }
    }

    #[test]
    fn a_port_is_never_closed_by_a_limit() {
        let left = shared(16, 0, &[(1_024, 2), (3, 1)]);
        assert_eq!(left, Some(vec![FEWEST, 3]));
    }
}
