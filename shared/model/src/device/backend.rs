//! candle's names for where and in which numbers a model is computed.

use candle_core::{DType, Device};

use crate::computation::{NumberFormat, Place, PlaceError};

/// Opens the device for candle.
///
/// # Errors
/// [`PlaceError`], if this build has no such backend, or the machine no such GPU.
pub(super) fn open(place: Place) -> Result<Device, PlaceError> {
    match place {
        Place::Cpu => Ok(Device::Cpu),
        Place::Cuda(_) if !cfg!(feature = "cuda") => Err(PlaceError::NotBuilt(place)),
        Place::Cuda(number) => Device::new_cuda(number).map_err(|error| PlaceError::Unavailable {
            place,
            reason: first_line(&error),
        }),
    }
}

pub(super) fn dtype(format: NumberFormat) -> DType {
    match format {
        NumberFormat::Bf16 => DType::BF16,
        NumberFormat::F16 => DType::F16,
        NumberFormat::F32 => DType::F32,
    }
}

/// What went wrong, without the backtrace that candle may append.
pub(super) fn first_line(error: &candle_core::Error) -> String {
    let message = error.to_string();
    message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn a_build_without_cuda_says_how_to_get_it() {
        let message = open(Place::Cuda(1)).unwrap_err().to_string();
        assert!(
            message.contains("cuda:1") && message.contains("--features cuda"),
            "{message}"
        );
    }
}
