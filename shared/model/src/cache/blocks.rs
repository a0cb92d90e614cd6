//! Keys and values of a page in blocks of 32 signed bytes with a half-precision scale: ggml's Q8_0.
//!
//! A block is 32 numbers of one slot, along the head's dimensions; the last of a head is as large where 32 does not
//! divide these, and filled with zeros. Four bytes stand together that one instruction multiplies and adds up: of a key
//! four dimensions, of values those of four slots. Scales stand beside them, so that what is read together is one
//! piece of memory to ask for.

use half::f16;

use super::{LANES, PAGE, heads::HeadNumbers};
use crate::linear::{QUANT_BLOCK, quantize_block};

/// Four signed bytes of each of sixteen slots or dimensions.
pub(crate) type Quads = [[i8; 4]; LANES];

/// 32 dimensions of the keys of sixteen slots.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct KeyBlock {
    pub(crate) scales: [f16; LANES],
    /// `(dimensions / 4, 16 slots, 4 dimensions)`.
    pub(crate) quants: [Quads; Self::STEPS],
}

/// 32 dimensions of the values of a page's slots.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct ValueBlock {
    pub(crate) scales: [f16; PAGE],
    /// `(slots / 4, dimensions / 16, 16 dimensions, 4 slots)`.
    pub(crate) quants: [[Quads; VALUE_LANES]; PAGE / 4],
}

/// Times sixteen dimensions of a block.
pub(crate) const VALUE_LANES: usize = QUANT_BLOCK / LANES;

impl KeyBlock {
    /// Times four dimensions of a block.
    pub(crate) const STEPS: usize = QUANT_BLOCK / 4;

    const ZERO: Self = Self {
        scales: [f16::ZERO; LANES],
        quants: [[[0; 4]; LANES]; Self::STEPS],
    };
}

impl ValueBlock {
    const ZERO: Self = Self {
        scales: [f16::ZERO; PAGE],
        quants: [[[[0; 4]; LANES]; VALUE_LANES]; PAGE / 4],
    };

    /// Number `d` of the value of `slot`, without its scale.
    #[inline(always)]
    pub(crate) fn quant(&self, slot: usize, d: usize) -> i8 {
        self.quants[slot / 4][d / LANES][d % LANES][slot % 4]
    }
}

/// 32 numbers of one key or value.
#[derive(Clone, Copy, Debug)]
struct HeadBlock {
    scale: f16,
    quants: [i8; QUANT_BLOCK],
}

impl HeadBlock {
    /// Up to 32 numbers, rounded to 127 steps of the largest. Where one of them is not finite, or the scale is more
    /// than half precision holds, all are NaN.
    fn of(numbers: &[f32]) -> Self {
        let (scale, quants) = quantize_block(numbers);
        let scale = f16::from_f32(scale);
        Self {
            // An infinite one would leave some numbers zero or infinite, and a sum of them might look right.
            scale: if scale.is_finite() { scale } else { f16::NAN },
            quants: quants.map(|quant| quant as i8),
        }
    }
}

/// Returns the number that `quant` stands for.
#[inline(always)]
fn number(quant: i8, scale: f32) -> f32 {
    f32::from(quant) * scale
}

/// Bytes of 32 numbers and their scale.
pub(super) const BLOCK_BYTES: usize = size_of::<f16>() + QUANT_BLOCK;

const _: () = assert!(size_of::<KeyBlock>() == LANES * BLOCK_BYTES);
const _: () = assert!(size_of::<ValueBlock>() == PAGE * BLOCK_BYTES);

/// Keys and values of a page, in blocks.
#[derive(Debug)]
pub(crate) struct PageBlocks {
    head_dim: usize,
    /// `(kv_heads, slots / 16, blocks of a head)`.
    keys: HeadNumbers<KeyBlock>,
    /// `(kv_heads, blocks of a head)`.
    values: HeadNumbers<ValueBlock>,
}

/// Returns the number of blocks that `head_dim` numbers take.
#[inline(always)]
pub(crate) fn blocks_of(head_dim: usize) -> usize {
    head_dim.div_ceil(QUANT_BLOCK)
}

impl PageBlocks {
    /// Zeros.
    pub(super) fn new(kv_heads: usize, head_dim: usize) -> Self {
        let blocks = blocks_of(head_dim);
        Self {
            head_dim,
            keys: HeadNumbers::filled(KeyBlock::ZERO, kv_heads, PAGE / LANES * blocks),
            values: HeadNumbers::filled(ValueBlock::ZERO, kv_heads, blocks),
        }
    }

    /// Takes over the numbers of another page of the same pool.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.keys.copy_from(&other.keys);
        self.values.copy_from(&other.values);
    }

    /// Writes key and value of `kv_head`, each `(head_dim)`, at `slot`.
    ///
    /// # Safety
    /// Nobody else reads or writes keys and values of this head meanwhile.
    pub(super) unsafe fn write(&self, slot: usize, kv_head: usize, key: &[f32], value: &[f32]) {
        let blocks = blocks_of(self.head_dim);
        let lane = slot % LANES;
        // SAFETY: the caller's promise.
        let held = unsafe { self.keys.part_mut(kv_head, slot / LANES * blocks, blocks) };
        for (held, key) in held.iter_mut().zip(key.chunks(QUANT_BLOCK)) {
            let block = HeadBlock::of(key);
            held.scales[lane] = block.scale;
            for (lanes, four) in held.quants.iter_mut().zip(block.quants.as_chunks().0) {
                lanes[lane] = *four;
            }
        }
        // SAFETY: as above.
        let held = unsafe { self.values.part_mut(kv_head, 0, blocks) };
        for (held, value) in held.iter_mut().zip(value.chunks(QUANT_BLOCK)) {
            let block = HeadBlock::of(value);
            held.scales[slot] = block.scale;
            let dimensions = held.quants[slot / 4].as_flattened_mut();
            for (four, quant) in dimensions.iter_mut().zip(block.quants) {
                four[slot % 4] = quant;
            }
        }
    }

    /// Key and value of `kv_head`, each `(head_dim)`, at `slot`.
    pub(super) fn read(&self, slot: usize, kv_head: usize, key: &mut [f32], value: &mut [f32]) {
        let blocks = blocks_of(self.head_dim);
        let lane = slot % LANES;
        let held = &self.keys(kv_head)[slot / LANES * blocks..][..blocks];
        for (block, key) in held.iter().zip(key.chunks_mut(QUANT_BLOCK)) {
            let scale = block.scales[lane].to_f32();
            for (d, key) in key.iter_mut().enumerate() {
                *key = number(block.quants[d / 4][lane][d % 4], scale);
            }
        }
        for (block, value) in self
            .values(kv_head)
            .iter()
            .zip(value.chunks_mut(QUANT_BLOCK))
        {
            let scale = block.scales[slot].to_f32();
            for (d, value) in value.iter_mut().enumerate() {
                *value = number(block.quant(slot, d), scale);
            }
        }
    }

    /// Keys of `kv_head`, `(slots / 16, blocks of a head)`.
    #[inline(always)]
    pub(crate) fn keys(&self, kv_head: usize) -> &[KeyBlock] {
        self.keys.head(kv_head)
    }

    /// Values of `kv_head`, `(blocks of a head)`.
    #[inline(always)]
    pub(crate) fn values(&self, kv_head: usize) -> &[ValueBlock] {
        self.values.head(kv_head)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{
        Device, Tensor,
        quantized::{GgmlDType, QTensor},
    };

    use super::*;
    use crate::weights::encode;

    /// Numbers of many sizes that are no half between two quants.
    fn numbers(count: usize) -> Vec<f32> {
        (0..count)
            .map(|i| (i as f32 * 0.731).sin() * 10_f32.powi(i as i32 / 32 % 9 - 4))
            .collect()
    }

    fn bytes(block: HeadBlock) -> Vec<u8> {
        let scale = block.scale.to_le_bytes();
        scale
            .into_iter()
            .chain(block.quants.map(i8::cast_unsigned))
            .collect()
    }

    /// Of a page with one head.
    fn held(key: &[f32], value: &[f32]) -> PageBlocks {
        let page = PageBlocks::new(1, key.len());
        // SAFETY: nobody else has it.
        unsafe { page.write(37, 0, key, value) };
        page
    }

    fn read(page: &PageBlocks, slot: usize) -> (Vec<f32>, Vec<f32>) {
        let mut read = (vec![0.5; page.head_dim], vec![0.5; page.head_dim]);
        page.read(slot, 0, &mut read.0, &mut read.1);
        read
    }

    /// The format of files: what candle makes of the same numbers, byte for byte, but where it rounds a half.
    #[test]
    fn a_block_is_that_of_ggml() {
        let numbers = numbers(32 * 400);
        let blocks = numbers.chunks(32).map(HeadBlock::of).flat_map(bytes);
        let found: Vec<u8> = blocks.collect();
        let tensor = Tensor::from_slice(&numbers, numbers.len(), &Device::Cpu).expect("a tensor");
        let by_candle = QTensor::quantize(&tensor, GgmlDType::Q8_0).expect("blocks");
        assert!(found == *by_candle.data().expect("bytes"));
        assert!(found == encode("a tensor", &numbers, GgmlDType::Q8_0).expect("bytes"));
        // And they mean the same.
        let expected = by_candle.dequantize(&Device::Cpu).expect("numbers");
        let expected = expected.to_vec1::<f32>().expect("numbers");
        for (numbers, expected) in numbers.chunks(64).zip(expected.chunks(64)) {
            let page = held(numbers, numbers);
            assert_eq!(read(&page, 37), (expected.to_vec(), expected.to_vec()));
        }
    }

    #[test]
    fn the_last_block_of_a_head_may_have_fewer_numbers() {
        for head_dim in [1, 10, 31, 80] {
            let wave = |i: usize| (i as f32 * 0.731).sin();
            let key: Vec<f32> = (0..head_dim).map(wave).collect();
            let value: Vec<f32> = (100..100 + head_dim).map(wave).collect();
            let page = held(&key, &value);
            let (found_key, found_value) = read(&page, 37);
            for (found, exact) in [(found_key, &key), (found_value, &value)] {
                for (found, exact) in found.chunks(32).zip(exact.chunks(32)) {
                    let largest = exact.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
                    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= largest / 127.0 * 0.6;
                    assert!(found.iter().zip(exact).all(near), "{head_dim}");
                }
            }
            // The neighbours hold what they held.
            assert_eq!(read(&page, 36), (vec![0.0; head_dim], vec![0.0; head_dim]));
        }
    }

    /// A token of a tree is moved by reading and writing it.
    #[test]
    fn what_is_held_is_written_again_as_it_is() {
        for scale in (0..=f16::MAX.to_bits()).map(f16::from_bits) {
            let at = |i: usize| (i as i32 * 37 + i32::from(scale.to_bits())) % 128;
            let mut quants: [i8; 32] = std::array::from_fn(|i| at(i) as i8 * [1, -1][i % 2]);
            quants[scale.to_bits() as usize % 32] = 127;
            let block = HeadBlock { scale, quants };
            let numbers = quants.map(|quant| number(quant, scale.to_f32()));
            let again = HeadBlock::of(&numbers);
            if scale != f16::ZERO {
                assert_eq!(bytes(again), bytes(block), "{scale:e}");
            }
            assert_eq!(again.scale, scale);
        }
    }

    #[test]
    fn what_no_block_holds_is_no_number() {
        let last = 65_519.0 * 127.0;
        for (number, holds) in [
            (f32::NAN, false),
            (f32::INFINITY, false),
            (f32::NEG_INFINITY, false),
            (1e30, false),
            (65_520.0 * 127.0, false),
            (last, true),
            (-last, true),
        ] {
            let mut written = numbers(64);
            written[40] = number;
            let (key, value) = read(&held(&written, &written), 37);
            assert!(key[..32].iter().chain(&value[..32]).all(|x| x.is_finite()));
            let mut others = key[32..].iter().chain(&value[32..]);
            assert!(others.all(|x| x.is_nan() != holds), "{number}");
        }
    }
}
