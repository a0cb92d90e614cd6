//! Where a model is computed, and in which numbers.

mod number;
mod place;

use derive_more::{Display, From};
use thiserror::Error;

use crate::{
    cache::{KvFormat, UnknownKvFormat},
    linear::{UnknownWeightFormat, WeightFormat},
};

pub use self::{
    number::{NumberFormat, UnknownNumberFormat},
    place::{ComputeDevice, ComputeDeviceError},
};

/// The name of the format that is chosen for the device, or for the weights.
pub const AUTOMATIC: &str = "auto";

/// The numbers of a model on CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuFormat {
    /// How weights are held and multiplied.
    pub weights: WeightFormat,
    /// How keys and values are held.
    pub kv: KvFormat,
}

/// Where a model is computed, and in which numbers; shown by the format of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, From)]
pub enum Computation {
    /// On CPUs, by this crate's kernels.
    #[display("{}", _0.weights)]
    #[from(WeightFormat, CpuFormat)]
    Cpu(CpuFormat),
    /// On a device, by candle's.
    #[display("{_1}")]
    Device(ComputeDevice, NumberFormat),
}

/// Why settings name no computation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownComputation {
    /// Of the device.
    #[error("device: {0}")]
    Place(#[from] ComputeDeviceError),
    /// Of the format, on a CPU.
    #[error("dtype: {0}")]
    WeightFormat(#[from] UnknownWeightFormat),
    /// Of the format, on a GPU.
    #[error("dtype: {0}")]
    NumberFormat(#[from] UnknownNumberFormat),
    /// Of the format of keys and values, on a CPU.
    #[error("kv_dtype: {0}")]
    KvFormat(#[from] UnknownKvFormat),
    /// Of the format of keys and values, on a GPU.
    #[error(
        "kv_dtype: on a GPU keys and values beside these weights are in {0}; not {1:?}: leave it at auto"
    )]
    KvOnDevice(NumberFormat, String),
}

impl CpuFormat {
    /// Names the arithmetic, for the numerics fingerprint.
    fn kernel_family(self) -> String {
        let weights = self.weights.kernel_family();
        match self.kv {
            KvFormat::Q8_0 | KvFormat::F16 => format!("{weights}-kv-{}", self.kv),
            KvFormat::F32 => weights.to_owned(),
        }
    }
}

impl From<WeightFormat> for CpuFormat {
    /// With keys and values as they go best with these weights.
    fn from(weights: WeightFormat) -> Self {
        Self {
            weights,
            kv: KvFormat::beside(weights),
        }
    }
}

impl Computation {
    /// Reads the settings `device`, `dtype` and `kv_dtype`. The format `auto` of weights is `best` on a CPU and
    /// bf16 on a GPU; that of keys and values is [`KvFormat::beside`] them.
    ///
    /// # Errors
    /// [`UnknownComputation`], if there is no such device, or no such format on it.
    pub fn read(
        device: &str,
        dtype: &str,
        kv_dtype: &str,
        best: WeightFormat,
    ) -> Result<Self, UnknownComputation> {
        let is_automatic = dtype == AUTOMATIC;
        match device.parse()? {
            ComputeDevice::Cpu => {
                let weights = if is_automatic { best } else { dtype.parse()? };
                let mut format = CpuFormat::from(weights);
                if kv_dtype != AUTOMATIC {
                    format.kv = kv_dtype.parse()?;
                }
                Ok(Self::Cpu(format))
            }
            place @ ComputeDevice::Cuda(_) => {
                let format = if is_automatic {
                    NumberFormat::default()
                } else {
                    dtype.parse()?
                };
                let kv = format.activations();
                if kv_dtype != AUTOMATIC && kv_dtype != kv.name() {
                    let requested = kv_dtype.to_owned();
                    return Err(UnknownComputation::KvOnDevice(kv, requested));
                }
                Ok(Self::Device(place, format))
            }
        }
    }

    /// Names the arithmetic, for the numerics fingerprint.
    pub(crate) fn kernel_family(self) -> String {
        match self {
            Self::Cpu(format) => format.kernel_family(),
            Self::Device(place, format) => format.kernel_family(place),
        }
    }

    /// Format of what is computed on the CPU beside the model, its acceptance heads.
    pub(crate) fn on_cpu(self) -> WeightFormat {
        match self {
            Self::Cpu(format) => format.weights,
            Self::Device(..) => WeightFormat::F32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use WeightFormat::{F32, Q4_K, Q8_0};

    fn read(device: &str, dtype: &str, kv_dtype: &str) -> Result<Computation, UnknownComputation> {
        Computation::read(device, dtype, kv_dtype, Q4_K)
    }

    #[test]
    fn each_device_has_its_formats() {
        let cpu = |weights, kv| Computation::Cpu(CpuFormat { weights, kv });
        let gpu = |format| Computation::Device(ComputeDevice::Cuda(1), format);
        for (device, dtype, kv_dtype, expected) in [
            ("cpu", "auto", "auto", cpu(Q4_K, KvFormat::F16)),
            ("cpu", "q8_0", "auto", cpu(Q8_0, KvFormat::F16)),
            ("cpu", "f32", "auto", cpu(F32, KvFormat::F32)),
            ("cpu", "f32", "f16", cpu(F32, KvFormat::F16)),
            ("cpu", "auto", "f32", cpu(Q4_K, KvFormat::F32)),
            ("cpu", "f32", "q8_0", cpu(F32, KvFormat::Q8_0)),
            ("cuda:1", "auto", "auto", gpu(NumberFormat::Bf16)),
            ("cuda:1", "f16", "auto", gpu(NumberFormat::F16)),
            ("cuda:1", "f32", "auto", gpu(NumberFormat::F32)),
            ("cuda:1", "bf16", "bf16", gpu(NumberFormat::Bf16)),
            ("cuda:1", "f16", "f16", gpu(NumberFormat::F16)),
            ("cuda:1", "q8_0", "auto", gpu(NumberFormat::Q8_0)),
            ("cuda:1", "q4_k", "bf16", gpu(NumberFormat::Q4_K)),
        ] {
            assert_eq!(read(device, dtype, kv_dtype), Ok(expected));
        }
    }

    #[test]
    fn what_a_device_does_not_have_is_refused_by_name() {
        for (device, dtype, kv_dtype, parts) in [
            ("cpu", "bf16", "auto", ["dtype", "bf16", "q8_0"]),
            (
                "cpu",
                "auto",
                "q4_0",
                ["kv_dtype", "q4_0", "auto, q8_0, f16 and f32"],
            ),
            ("cuda", "q5_0", "auto", ["dtype", "q5_0", "bf16"]),
            ("cuda", "auto", "f16", ["kv_dtype", "bf16", "auto"]),
            ("cuda", "q8_0", "q8_0", ["kv_dtype", "bf16", "auto"]),
            ("tpu", "auto", "auto", ["device", "tpu", "cuda:N"]),
        ] {
            let refused = read(device, dtype, kv_dtype).unwrap_err().to_string();
            let named = parts.iter().all(|part| refused.contains(part));
            assert!(named, "{refused}");
        }
    }

    #[test]
    fn kernel_families_tell_all_formats_apart() {
        let mut families = std::collections::BTreeSet::new();
        for weights in WeightFormat::ALL {
            for kv in KvFormat::ALL {
                families.insert(CpuFormat { weights, kv }.kernel_family());
            }
        }
        assert_eq!(families.len(), 9, "{families:?}");
        assert!(families.contains("outrider-q8_0-x32-v4-kv-q8_0"));
    }
}
