//! candle's names for where and in which numbers a model is computed.

use candle_core::{DType, Device};

use crate::{
    computation::{ComputeDevice, ComputeDeviceError, NumberFormat},
    forward_error::ForwardError,
};

/// Opens the device for candle.
///
/// # Errors
/// [`ComputeDeviceError`], if this build has no such backend, or the machine no such GPU.
pub(super) fn open(place: ComputeDevice) -> Result<Device, ComputeDeviceError> {
    match place {
        ComputeDevice::Cpu => Ok(Device::Cpu),
        ComputeDevice::Cuda(_) if !cfg!(feature = "cuda") => {
            Err(ComputeDeviceError::NotBuilt(place))
        }
        ComputeDevice::Cuda(number) => {
            Device::new_cuda(number).map_err(|error| ComputeDeviceError::Unavailable {
                place,
                reason: first_line(&error),
            })
        }
    }
}

/// Of keys, values and hidden states beside weights in `format`.
pub(super) fn dtype(format: NumberFormat) -> DType {
    match format {
        NumberFormat::F16 => DType::F16,
        NumberFormat::F32 => DType::F32,
        NumberFormat::Bf16 | NumberFormat::Q8_0 | NumberFormat::Q4_K => DType::BF16,
    }
}

/// Bytes of the device's memory that nobody has, if it tells.
#[cfg(feature = "cuda")]
pub(super) fn free_bytes(device: &Device) -> Option<usize> {
    let Device::Cuda(cuda) = device else {
        return None;
    };
    let (free, _) = cuda.cuda_stream().context().mem_get_info().ok()?;
    Some(free)
}

/// A CPU has no memory of its own.
#[cfg(not(feature = "cuda"))]
pub(super) fn free_bytes(_device: &Device) -> Option<usize> {
    None
}

/// Why a forward failed. candle hands on what the driver and its libraries said, which name their errors so.
pub(super) fn failure(error: &candle_core::Error) -> ForwardError {
    let message = first_line(error);
    let names = ["CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED"];
    if names.iter().any(|name| message.contains(name)) {
        ForwardError::OutOfMemory(message)
    } else {
        ForwardError::Device(message)
    }
}

/// Returns what went wrong, without the backtrace that candle may append.
pub(super) fn first_line(error: &candle_core::Error) -> String {
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

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn a_build_without_cuda_says_how_to_get_it() {
        let message = open(ComputeDevice::Cuda(1)).unwrap_err().to_string();
        assert!(
            message.contains("cuda:1") && message.contains("--features cuda"),
            "{message}"
        );
    }
}
