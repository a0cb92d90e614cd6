//! Formats of weights.

use candle_core::quantized::GgmlDType;
use derive_more::From;
use thiserror::Error;

/// How weights are held and multiplied.
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
#[strum(parse_err_ty = UnknownWeightFormat, parse_err_fn = UnknownWeightFormat::from)]
pub enum WeightFormat {
    /// 8-bit blocks of 32 with a half-precision scale, activations likewise; a quarter of the
    /// memory traffic of [`WeightFormat::F32`], which is what decoding costs.
    #[default]
    Q8_0,
    /// 4-bit numbers in blocks of 256 with 6-bit scales and minima for each 32, activations as in
    /// [`WeightFormat::Q8_0`]; about half its memory traffic. Matrices whose rows are no multiple of
    /// 256 inputs are held in [`WeightFormat::Q8_0`].
    #[allow(non_camel_case_types, reason = "so it is called")]
    Q4_K,
    /// Full precision.
    F32,
}

impl WeightFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Q8_0, Self::Q4_K, Self::F32];

    /// The name in configuration and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The format that rows of `inputs` numbers are held in: as llama.cpp does, rows that are no whole blocks get
    /// the format that has smaller ones.
    pub(crate) fn of_rows(self, inputs: usize) -> Self {
        match self {
            Self::Q4_K if !inputs.is_multiple_of(GgmlDType::Q4K.block_size()) => Self::Q8_0,
            format => format,
        }
    }

    /// Names the arithmetic, for the numerics fingerprint. To be changed with every change of a
    /// kernel that changes a bit.
    pub(crate) fn kernel_family(self) -> &'static str {
        match self {
            Self::Q8_0 => "outrider-q8_0-x32-v4",
            Self::Q4_K => "outrider-q4_k-x32-v5",
            Self::F32 => "outrider-f32-c128-fma-v7",
        }
    }
}

/// No weight format has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error, From)]
#[from(&str)]
#[error("no weight format {0:?}: q8_0, q4_k and f32 are known")]
pub struct UnknownWeightFormat(pub String);
