//! Memory of the machine that this process may still take.

use sysinfo::System;

/// Bytes that are free for new allocations: what the system can hand out without swapping, and no more than is left
/// below the memory limit of the container that the process runs in (the root of its cgroup namespace). What files
/// keep in the cache counts as free. None if the system does not tell.
pub fn free_bytes() -> Option<u64> {
    let mut system = System::new();
    system.refresh_memory();
    let container = system.cgroup_limits();
    let container = container.map(|limits| (limits.total_memory, limits.rss));
    let available = system.available_memory();
    (available > 0).then(|| free(available, container))
}

/// Returns what is free of `available` bytes in a container, of which its limit and what its processes took, without
/// the cache of files, are known.
fn free(available: u64, container: Option<(u64, u64)>) -> u64 {
    let left = container.map(|(limit, taken)| limit.saturating_sub(taken));
    available.min(left.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_container_counts_where_it_is_less() {
        let within = |limit, taken| free(100, Some((limit, taken)));
        assert_eq!(free(100, None), 100);
        assert_eq!(within(60, 20), 40);
        assert_eq!(within(1_000, 20), 100);
        assert_eq!(within(60, 70), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_tells() {
        let free = free_bytes().expect("a number");
        let mut system = System::new();
        system.refresh_memory();
        assert!(free > 0 && free <= system.total_memory(), "{free}");
    }
}
