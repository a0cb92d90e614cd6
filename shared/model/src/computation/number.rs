//! The numbers that a device computes with.

use candle_core::quantized::GgmlDType;
use derive_more::From;
use thiserror::Error;

use super::ComputeDevice;

/// Format of weights on a device. Keys, values and the inputs of products are in it too, or in
/// [`NumberFormat::activations`] where it is for weights alone. Norms, rotations, softmax and the sums between
/// layers are computed in f32 whatever this is.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
#[strum(parse_err_ty = UnknownNumberFormat, parse_err_fn = UnknownNumberFormat::from)]
pub enum NumberFormat {
    /// bfloat16: the range of f32, 8 bits of precision. What most models were trained in.
    #[default]
    Bf16,
    /// Half precision: 11 bits, but large activations overflow.
    F16,
    /// Single precision.
    F32,
    /// Weights in 8-bit blocks of 32, the rest in bf16. Matrices whose rows are no whole blocks are in bf16.
    Q8_0,
    /// Weights in 4-bit blocks of 256, the rest in bf16. Matrices whose rows are no whole blocks are in
    /// [`NumberFormat::Q8_0`].
    #[allow(non_camel_case_types, reason = "so it is called")]
    Q4_K,
}

impl NumberFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Bf16, Self::F16, Self::F32, Self::Q8_0, Self::Q4_K];

    /// The name in configuration and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The format of keys, values and hidden states beside weights in this one.
    #[must_use]
    pub fn activations(self) -> Self {
        match self {
            Self::Q8_0 | Self::Q4_K => Self::Bf16,
            format => format,
        }
    }

    /// Returns what rows of `inputs` weights are stored in: blocks, if they are whole ones.
    pub(crate) fn stored(self, inputs: usize) -> GgmlDType {
        let fits = |format: GgmlDType| inputs.is_multiple_of(format.block_size());
        match self {
            Self::F16 => GgmlDType::F16,
            Self::F32 => GgmlDType::F32,
            Self::Q4_K if fits(GgmlDType::Q4K) => GgmlDType::Q4K,
            Self::Q8_0 | Self::Q4_K if fits(GgmlDType::Q8_0) => GgmlDType::Q8_0,
            Self::Bf16 | Self::Q8_0 | Self::Q4_K => GgmlDType::BF16,
        }
    }

    /// Names the arithmetic on `place`, for the numerics fingerprint. To be changed with every change
    /// that changes a bit. It promises less than the families of our own kernels: a library chooses
    /// the order of its sums by the shape of the batch.
    pub(crate) fn kernel_family(self, place: ComputeDevice) -> String {
        let backend = match place {
            ComputeDevice::Cpu => "cpu",
            ComputeDevice::Cuda(_) => "cuda",
        };
        format!("candle-{backend}-{self}-v1")
    }
}

/// No number format has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error, From)]
#[from(&str)]
#[error("no format {0:?} on a GPU: bf16, f16, f32, q8_0 and q4_k are known")]
pub struct UnknownNumberFormat(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_tell_formats_and_processors_apart() {
        // The number of a GPU is not in its arithmetic.
        let family = |format: NumberFormat, place| format.kernel_family(place);
        assert_eq!(
            family(NumberFormat::Bf16, ComputeDevice::Cuda(3)),
            "candle-cuda-bf16-v1"
        );
        assert_eq!(
            family(NumberFormat::F32, ComputeDevice::Cpu),
            "candle-cpu-f32-v1"
        );
    }
}
