//! Where a model is computed, and in which numbers.

use std::fmt;

use thiserror::Error;

use crate::{
    device::{NumberFormat, Place, PlaceError, UnknownNumberFormat},
    linear::{UnknownWeightFormat, WeightFormat},
};

/// The name of the format that is chosen for the device.
pub const AUTOMATIC: &str = "auto";

/// Where a model is computed, and in which numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computation {
    /// On CPUs, by this crate's kernels.
    Cpu(WeightFormat),
    /// On a device, by candle's.
    Device(Place, NumberFormat),
}

/// Why settings name no computation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownComputation {
    /// Of the device.
    #[error("device: {0}")]
    Place(#[from] PlaceError),
    /// Of the format, on a CPU.
    #[error("dtype: {0}")]
    WeightFormat(#[from] UnknownWeightFormat),
    /// Of the format, on a GPU.
    #[error("dtype: {0}")]
    NumberFormat(#[from] UnknownNumberFormat),
}

impl Computation {
    /// Reads the settings `device` and `dtype`; the format `auto` is Q8_0 on a CPU and bf16 on a GPU.
    ///
    /// # Errors
    /// [`UnknownComputation`], if there is no such device, or no such format on it.
    pub fn read(device: &str, dtype: &str) -> Result<Self, UnknownComputation> {
        let is_automatic = dtype == AUTOMATIC;
        Ok(match device.parse()? {
            Place::Cpu if is_automatic => Self::Cpu(WeightFormat::default()),
            Place::Cpu => Self::Cpu(dtype.parse()?),
            place @ Place::Cuda(_) if is_automatic => Self::Device(place, NumberFormat::default()),
            place @ Place::Cuda(_) => Self::Device(place, dtype.parse()?),
        })
    }

    /// Names the arithmetic, for the numerics fingerprint.
    pub(crate) fn kernel_family(self) -> String {
        match self {
            Self::Cpu(format) => format.kernel_family().to_owned(),
            Self::Device(place, format) => format.kernel_family(place),
        }
    }

    /// Format of what is computed on the CPU beside the model, its acceptance heads.
    pub(crate) fn on_cpu(self) -> WeightFormat {
        match self {
            Self::Cpu(format) => format,
            Self::Device(..) => WeightFormat::F32,
        }
    }
}

impl From<WeightFormat> for Computation {
    fn from(format: WeightFormat) -> Self {
        Self::Cpu(format)
    }
}

impl fmt::Display for Computation {
    /// Names the format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(format) => format.fmt(f),
            Self::Device(_, format) => format.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_formats() {
        let cpu = Computation::Cpu;
        let gpu = |format| Computation::Device(Place::Cuda(1), format);
        for (device, dtype, expected) in [
            ("cpu", "auto", cpu(WeightFormat::Q8_0)),
            ("cpu", "f32", cpu(WeightFormat::F32)),
            ("cuda:1", "auto", gpu(NumberFormat::Bf16)),
            ("cuda:1", "f16", gpu(NumberFormat::F16)),
        ] {
            assert_eq!(Computation::read(device, dtype), Ok(expected));
        }
        for (device, dtype, parts) in [
            ("cpu", "bf16", ["dtype", "bf16", "q8_0"]),
            ("cuda", "q8_0", ["dtype", "q8_0", "bf16"]),
            ("tpu", "auto", ["device", "tpu", "cuda:N"]),
        ] {
            let refused = Computation::read(device, dtype).unwrap_err().to_string();
            let named = parts.iter().all(|part| refused.contains(part));
            assert!(named, "{refused}");
        }
    }
}
