//! Formats of keys and values.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::linear::WeightFormat;

/// How keys and values are held on a CPU. What is computed with them is f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvFormat {
    /// Half precision, 11 bits: half the memory, and half of what the attention of a long sequence reads.
    /// Numbers from 65,520 on become NaN, so that what is computed with them is not taken for a result.
    F16,
    /// Single precision.
    F32,
}

impl KvFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::F16, Self::F32];

    /// The smallest format that adds next to nothing to what `weights` lose: beside quantised ones
    /// activations have 8 bits.
    pub fn beside(weights: WeightFormat) -> Self {
        match weights {
            WeightFormat::F32 => Self::F32,
            WeightFormat::Q8_0 | WeightFormat::Q4_K => Self::F16,
        }
    }

    /// Size of a number in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }

    /// The name in configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }
}

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KvFormat {
    type Err = UnknownKvFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownKvFormat(name.to_owned()))
    }
}

/// No format of keys and values has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no format {0:?} of keys and values: auto, f16 and f32 are known")]
pub struct UnknownKvFormat(pub String);
