//! Devices and formats by candle's names.

use candle_core::{DType, Device};

use crate::computation::{ComputeDevice, ComputeDeviceError, NumberFormat};

/// Opens `place` for candle.
///
/// # Errors
/// If there is no such device, or the program was built without what drives it.
pub(super) fn open(place: ComputeDevice) -> std::result::Result<Device, ComputeDeviceError> {
    match place {
        ComputeDevice::Cpu => Ok(Device::Cpu),
        #[cfg(feature = "device")]
        place @ ComputeDevice::Cuda(_) => crate::device::open(place),
        #[cfg(not(feature = "device"))]
        place @ ComputeDevice::Cuda(_) => Err(ComputeDeviceError::NotBuilt(place)),
    }
}

/// Returns candle's name of a format of floating-point numbers.
pub(super) fn dtype(format: NumberFormat) -> DType {
    match format {
        NumberFormat::Bf16 => DType::BF16,
        NumberFormat::F16 => DType::F16,
        NumberFormat::F32 | NumberFormat::Q8_0 | NumberFormat::Q4_K => DType::F32,
    }
}
