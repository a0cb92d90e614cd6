//! candle's names for where and in which numbers a model is computed.

use candle_core::{DType, Device};

use crate::candle_failure::first_line;
use crate::computation::{ComputeDevice, ComputeDeviceError, NumberFormat};

/// Opens the device for candle.
///
/// # Errors
/// [`ComputeDeviceError`], if this build has no such backend, or the machine no such GPU.
pub(crate) fn open(place: ComputeDevice) -> Result<Device, ComputeDeviceError> {
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
pub(crate) fn free_bytes(device: &Device) -> Option<usize> {
    let Device::Cuda(cuda) = device else {
        return None;
    };
    let (free, _) = cuda.cuda_stream().context().mem_get_info().ok()?;
    Some(free)
}

/// A CPU has no memory of its own.
#[cfg(not(feature = "cuda"))]
pub(crate) fn free_bytes(_device: &Device) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
