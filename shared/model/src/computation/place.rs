//! Where a model is computed.

use std::str::FromStr;

use thiserror::Error;

/// The processor that a model is computed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, derive_more::Display)]
pub enum ComputeDevice {
    /// The CPU, with this crate's own kernels.
    #[default]
    #[display("cpu")]
    Cpu,
    /// An NVIDIA GPU, by its number among those the driver shows.
    #[display("cuda:{_0}")]
    Cuda(usize),
}

/// Why a model cannot be computed where it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ComputeDeviceError {
    /// No processor has that name.
    #[error("no device {0:?}: cpu, cuda and cuda:N are known")]
    Unknown(String),
    /// A build without the feature.
    #[error(
        "this program was built without CUDA and cannot use {0}: use device cpu, or build with \
         --features cuda (docs/gpu.md)"
    )]
    NotBuilt(ComputeDevice),
    /// The driver shows no such GPU.
    #[error("{place} cannot be used: {reason}; use device cpu, or see what nvidia-smi lists")]
    Unavailable {
        /// The GPU.
        place: ComputeDevice,
        /// What the driver said.
        reason: String,
    },
}

impl FromStr for ComputeDevice {
    type Err = ComputeDeviceError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || ComputeDeviceError::Unknown(name.to_owned());
        match name.split_once(':') {
            None if name == "cpu" => Ok(Self::Cpu),
            None if name == "cuda" => Ok(Self::Cuda(0)),
            // Digits only: `parse` would take "+1".
            Some(("cuda", number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                number.parse().map(Self::Cuda).map_err(|_| unknown())
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (name, place) in [
            ("cpu", ComputeDevice::Cpu),
            ("cuda:0", ComputeDevice::Cuda(0)),
            ("cuda:12", ComputeDevice::Cuda(12)),
        ] {
            assert_eq!(name.parse(), Ok(place));
            assert_eq!(place.to_string(), name);
        }
        assert_eq!("cuda".parse(), Ok(ComputeDevice::Cuda(0)));
        for name in ["", "gpu", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "cpu:0"] {
            let unknown = ComputeDeviceError::Unknown(name.to_owned());
            assert_eq!(name.parse::<ComputeDevice>(), Err(unknown), "{name}");
        }
    }
}
