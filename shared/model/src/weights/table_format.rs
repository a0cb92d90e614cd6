//! Blocks of 4-bit numbers that stand for those of a table, of which candle knows none: IQ4_NL, IQ4_XS and MXFP4.

use half::f16;

/// How 4-bit numbers stand for those of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFormat {
    /// 32 numbers: a half-precision scale, then two numbers a byte.
    Iq4Nl,
    /// 256 numbers: a half-precision scale, 6-bit scales for each 32, then two numbers a byte.
    Iq4Xs,
    /// 32 numbers: a power of two, then two numbers of four-bit floating point a byte (OCP Microscaling Formats 1.0).
    Mxfp4,
}

/// The numbers of the quants of IQ4_NL and IQ4_XS, in units of the scale.
const NON_LINEAR: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];
/// The numbers of MXFP4's quants, in halves: sign, two bits of exponent, one of mantissa.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

const IQ4_NL_BYTES: usize = 18;
const IQ4_XS_BYTES: usize = 136;
const MXFP4_BYTES: usize = 17;

impl TableFormat {
    /// Numbers of a block.
    pub(crate) fn block_size(self) -> usize {
        match self {
            Self::Iq4Nl | Self::Mxfp4 => 32,
            Self::Iq4Xs => 256,
        }
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::Iq4Nl => IQ4_NL_BYTES,
            Self::Iq4Xs => IQ4_XS_BYTES,
            Self::Mxfp4 => MXFP4_BYTES,
        }
    }

    /// Appends the numbers of whole blocks to `values`.
    pub(super) fn decode(self, bytes: &[u8], values: &mut Vec<f32>) {
        match self {
            Self::Iq4Nl => {
                let (blocks, _) = bytes.as_chunks::<IQ4_NL_BYTES>();
                for [low, high, numbers @ ..] in blocks {
                    let scale = f16::from_le_bytes([*low, *high]).to_f32();
                    append(numbers, &NON_LINEAR, scale, values);
                }
            }
            Self::Iq4Xs => {
                let (blocks, _) = bytes.as_chunks::<IQ4_XS_BYTES>();
                for block in blocks {
                    iq4_xs(block, values);
                }
            }
            Self::Mxfp4 => {
                let (blocks, _) = bytes.as_chunks::<MXFP4_BYTES>();
                for [exponent, numbers @ ..] in blocks {
                    append(numbers, &E2M1, half_of_e8m0(*exponent), values);
                }
            }
        }
    }
}

/// Appends the numbers of 16 bytes: first those in the low halves, then those in the high ones.
fn append(numbers: &[u8; 16], table: &[i8; 16], scale: f32, values: &mut Vec<f32>) {
    let of = |number: u8| f32::from(table[usize::from(number)]) * scale;
    values.extend(numbers.iter().map(|byte| of(byte & 15)));
    values.extend(numbers.iter().map(|byte| of(byte >> 4)));
}

/// A scale's low four bits stand two in a byte after the high two bits of all, 32 is taken from it.
fn iq4_xs(block: &[u8; IQ4_XS_BYTES], values: &mut Vec<f32>) {
    let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
    let high = u16::from_le_bytes([block[2], block[3]]);
    let (low, numbers) = block[4..].split_at(4);
    let (numbers, _) = numbers.as_chunks::<16>();
    for (i, numbers) in numbers.iter().enumerate() {
        let low = low[i / 2] >> (4 * (i % 2)) & 15;
        let high = (high >> (2 * i) & 3) as u8;
        let own = f32::from(low | high << 4) - 32.0;
        append(numbers, &NON_LINEAR, scale * own, values);
    }
}

/// Half of the power of two that `exponent` stands for, as the table has halves; 255 is no number.
fn half_of_e8m0(exponent: u8) -> f32 {
    match exponent {
        u8::MAX => f32::NAN,
        // Below the smallest normal numbers.
        0 | 1 => f32::from_bits(1 << (21 + exponent)),
        _ => f32::from_bits(u32::from(exponent - 1) << 23),
    }
}
