//! The allocator's settings.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` of mimalloc.h, which the bindings leave out: after how many milliseconds
/// freed pages go back to the system; -1 is never.
const PURGE_DELAY: mi_option_t = 15;

/// Keeps freed pages instead of returning them to the system. A forward frees and takes the same
/// buffers over and over; giving pages back in between makes each of them fault in again.
pub(crate) fn keep_pages() {
    // SAFETY: sets one option of the allocator; callable at any time, from any thread.
    unsafe { mi_option_set(PURGE_DELAY, -1) }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    /// mimalloc's default delay is 10 ms (1 s in its third version), and no other option has
    /// either default: the number still names the option it is meant to name.
    #[test]
    fn the_option_is_the_purge_delay() {
        // SAFETY: reads one option of the allocator.
        let before = unsafe { mi_option_get(PURGE_DELAY) };
        assert!(before == 10 || before == 1_000, "{before}");
        keep_pages();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, -1);
    }
}
