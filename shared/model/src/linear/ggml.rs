//! ggml's blocks of quantised weights, as GGUF files hold them.

use candle_core::quantized::GgmlDType;
use half::f16;

/// Returns the bytes of a matrix `(outputs, inputs)` in blocks of `format`; `None` if rows are no whole blocks, or
/// nothing.
pub(super) fn matrix_bytes(format: GgmlDType, outputs: usize, inputs: usize) -> Option<usize> {
    if outputs == 0 || inputs == 0 || !inputs.is_multiple_of(format.block_size()) {
        return None;
    }
    let row = (inputs / format.block_size()).checked_mul(format.type_size())?;
    row.checked_mul(outputs)
}

/// Bytes of a Q8_0 block: a half-precision scale, then 32 signed bytes.
pub(super) const Q8_0_BYTES: usize = 34;
/// Bytes of a Q4_K block: scale and scale of the minima in half precision, the sub-blocks' scales and
/// minima in 6 bits each, then 256 numbers of 4 bits.
pub(super) const Q4_K_BYTES: usize = 144;

/// The scale and the quants of a Q8_0 block, 128 added to each.
#[inline(always)]
pub(super) fn q8_0(block: &[u8; Q8_0_BYTES]) -> (f16, [u8; 32]) {
    let [low, high, quants @ ..] = block;
    // The sign's bit is what 128 turns over.
    (f16::from_le_bytes([*low, *high]), quants.map(|q| q ^ 0x80))
}

/// The fields of a Q4_K block: weight `i` of sub-block `s` is `scale * scales[s] * quant - min_scale * mins[s]`.
pub(super) struct Q4KBlock {
    pub(super) scale: f32,
    pub(super) min_scale: f32,
    pub(super) scales: [u8; 8],
    pub(super) mins: [u8; 8],
    /// The quant of weight `i` of sub-block `s` in the low half of `[s][i]`, that of weight `16 + i` in its high half.
    pub(super) pairs: [[u8; 16]; 8],
}

/// Unpacks a Q4_K block.
#[inline(always)]
pub(super) fn q4_k(block: &[u8; Q4_K_BYTES]) -> Q4KBlock {
    let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    let packed = &block[4..16];
    // The first four have their six bits together; those of the last four are the low four bits of a
    // byte and the two high bits of one of the first.
    let six = |s: usize, first: usize, shift: usize| {
        if s < 4 {
            packed[first + s] & 63
        } else {
            (packed[4 + s] >> shift & 15) | (packed[first + s - 4] >> 6 << 4)
        }
    };
    // 64 numbers in 32 bytes: the first 32 in the low halves.
    let mut pairs = [[0; 16]; 8];
    let (both, _) = block[16..].as_chunks::<32>();
    for (pairs, stored) in pairs.as_chunks_mut::<2>().0.iter_mut().zip(both) {
        for i in 0..16 {
            let (first, second) = (stored[i], stored[16 + i]);
            pairs[0][i] = first & 15 | second << 4;
            pairs[1][i] = first >> 4 | second & 0xf0;
        }
    }
    Q4KBlock {
        scale: half(0),
        min_scale: half(2),
        scales: std::array::from_fn(|s| six(s, 0, 0)),
        mins: std::array::from_fn(|s| six(s, 4, 4)),
        pairs,
    }
}
