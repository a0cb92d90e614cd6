//! What candle says where it fails.

use crate::forward_error::ForwardError;

/// Why a forward failed. candle hands on what the driver and its libraries said, which name their errors so.
pub(crate) fn failure(error: &candle_core::Error) -> ForwardError {
    let message = first_line(error);
    let names = ["CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED"];
    if names.iter().any(|name| message.contains(name)) {
        ForwardError::OutOfMemory(message)
    } else {
        ForwardError::Device(message)
    }
}

/// Returns what went wrong, without the backtrace that candle may append.
pub(crate) fn first_line(error: &candle_core::Error) -> String {
    let message = error.to_string();
    message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_memory_is_told_from_other_failures() {
        let of = |message: &str| failure(&candle_core::Error::Cuda(message.into()).bt());
        let full = r#"DriverError(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")"#;
        assert_eq!(of(full), ForwardError::OutOfMemory(full.to_owned()));
        let other = r#"DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access")"#;
        assert_eq!(of(other), ForwardError::Device(other.to_owned()));
    }
}
