//! What is said when the system gives no more threads.

use std::panic;

/// What the standard library and tokio say then, before the system's own words.
const NO_THREAD: [&str; 2] = ["failed to spawn thread", "can't spawn worker thread"];
const NO_RESOURCE: &str = "Resource temporarily unavailable";

/// Has a panic for want of threads said in one line, with what to do about it, and not with a backtrace. All others are
/// faults of the program, and told as ever.
pub fn explain_want_of_threads() {
    let as_ever = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let said = info.payload_as_str();
        if said.is_some_and(is_want_of_threads) {
            eprintln!(
                "error: the system starts no more threads for this program: raise the limit of its processes \
                 (`ulimit -u`, `pids` of a container's limits), or lower the services' threads"
            );
            return;
        }
        as_ever(info);
    }));
}

fn is_want_of_threads(said: &str) -> bool {
    said.contains(NO_RESOURCE) && NO_THREAD.iter().any(|part| said.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_threads_is_told_from_faults() {
        let tokio = "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)";
        let std = "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }";
        assert!(is_want_of_threads(tokio) && is_want_of_threads(std));
        for other in [
            "index out of bounds",
            "Resource temporarily unavailable",
            "failed to spawn thread: other",
        ] {
            assert!(!is_want_of_threads(other), "{other}");
        }
    }
}
