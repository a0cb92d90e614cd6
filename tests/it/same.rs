//! Answers of the target under faults: the same tokens as without.

use wire::v1::GenerateRequest;

/// Fails unless `found` is `expected`. On an engine that rounds otherwise when a sequence is computed anew, they may
/// part where two scores are nearly the same.
pub(crate) fn assert_same(requested: &GenerateRequest, found: &[u32], expected: &[u32]) {
    #[cfg(feature = "llama-cpp")]
    if crate::llama_cpp::suites::is_near_tie(requested, found, expected) {
        return;
    }
    assert_eq!(found, expected, "{requested:?}");
}
