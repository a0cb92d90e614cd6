//! How much memory this process takes at its most.

/// Bytes that this process took at its most while `work` ran, beyond what it held before; 0 where the system does not
/// tell.
pub fn grown_by<T>(work: impl FnOnce() -> T) -> (T, u64) {
    // "5" has the peak begin anew.
    let is_told = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = if is_told { bytes("VmRSS:") } else { 0 };
    let result = work();
    let peak = if is_told { bytes("VmHWM:") } else { 0 };
    (result, peak.saturating_sub(before))
}

/// A line of what the system tells of this process.
fn bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}
