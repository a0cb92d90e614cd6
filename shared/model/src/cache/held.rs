//! The numbers of a page, in one of the formats.

use half::{f16, slice::HalfFloatSliceExt as _};

use super::{KvFormat, LANES, PAGE, blocks::PageBlocks, heads::HeadNumbers};

/// Numbers of a key that are rounded at a time.
const ROUNDED: usize = 64;

/// Keys and values of a page in one of the formats.
pub(crate) trait PageFormat: Sized {
    /// Returns what is held, if it is in this format.
    fn of(numbers: &Numbers) -> Option<&Self>;
}

impl PageFormat for PageNumbers<f16> {
    #[inline(always)]
    fn of(numbers: &Numbers) -> Option<&Self> {
        match numbers {
            Numbers::F16(held) => Some(held),
            _ => None,
        }
    }
}

impl PageFormat for PageNumbers<f32> {
    #[inline(always)]
    fn of(numbers: &Numbers) -> Option<&Self> {
        match numbers {
            Numbers::F32(held) => Some(held),
            _ => None,
        }
    }
}

impl PageFormat for PageBlocks {
    #[inline(always)]
    fn of(numbers: &Numbers) -> Option<&Self> {
        match numbers {
            Numbers::Q8_0(held) => Some(held),
            _ => None,
        }
    }
}

/// A number of a [`KvFormat`] that holds each by itself.
pub(crate) trait KvNumber: Copy + 'static {
    /// Zero.
    const ZERO: Self;

    /// As single precision, which holds it exactly.
    fn to_f32(self) -> f32;

    /// Rounds `from` to `to`, which is as long: to the nearest number, of two to the even one; NaN where
    /// there is none.
    fn round(from: &[f32], to: &mut [Self]);
}

impl KvNumber for f16 {
    const ZERO: Self = Self::ZERO;

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn round(from: &[f32], to: &mut [Self]) {
        to.convert_from_f32_slice(from);
        for half in to {
            // An infinite key may leave all sums finite, and wrong.
            if half.is_infinite() {
                *half = Self::NAN;
            }
        }
    }
}

impl KvNumber for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn round(from: &[f32], to: &mut [Self]) {
        to.copy_from_slice(from);
    }
}

/// Keys and values of a page, in the format of its pool.
#[derive(Debug)]
pub(crate) enum Numbers {
    Q8_0(PageBlocks),
    F16(PageNumbers<f16>),
    F32(PageNumbers<f32>),
}

/// Keys and values of a page, each number by itself.
#[derive(Debug)]
pub(crate) struct PageNumbers<T: KvNumber> {
    head_dim: usize,
    /// `(kv_heads, slots / 16, head_dim, 16)`: sixteen scores are computed side by side.
    keys: HeadNumbers<[T; LANES]>,
    /// `(kv_heads, slots, head_dim)`.
    values: HeadNumbers<T>,
}

impl Default for Numbers {
    /// Of no page.
    fn default() -> Self {
        Self::new(KvFormat::F32, 0, 0)
    }
}

impl Numbers {
    /// Zeros, for a page.
    pub(super) fn new(format: KvFormat, kv_heads: usize, head_dim: usize) -> Self {
        match format {
            KvFormat::Q8_0 => Self::Q8_0(PageBlocks::new(kv_heads, head_dim)),
            KvFormat::F16 => Self::F16(PageNumbers::new(kv_heads, head_dim)),
            KvFormat::F32 => Self::F32(PageNumbers::new(kv_heads, head_dim)),
        }
    }

    /// Takes over the numbers of another page of the same pool.
    pub(super) fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::Q8_0(own), Self::Q8_0(other)) => own.copy_from(other),
            (Self::F16(own), Self::F16(other)) => own.copy_from(other),
            (Self::F32(own), Self::F32(other)) => own.copy_from(other),
            _ => unreachable!("all pages of a pool have its format"),
        }
    }

    /// Writes key and value of `kv_head`, each `(head_dim)`, at `slot`.
    ///
    /// # Safety
    /// Nobody else reads or writes keys and values of this head meanwhile.
    pub(super) unsafe fn write(&self, slot: usize, kv_head: usize, key: &[f32], value: &[f32]) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Q8_0(held) => held.write(slot, kv_head, key, value),
                Self::F16(held) => held.write(slot, kv_head, key, value),
                Self::F32(held) => held.write(slot, kv_head, key, value),
            }
        }
    }

    /// Key and value of `kv_head`, each `(head_dim)`, at `slot`.
    pub(super) fn read(&self, slot: usize, kv_head: usize, key: &mut [f32], value: &mut [f32]) {
        match self {
            Self::Q8_0(held) => held.read(slot, kv_head, key, value),
            Self::F16(held) => held.read(slot, kv_head, key, value),
            Self::F32(held) => held.read(slot, kv_head, key, value),
        }
    }
}

impl<T: KvNumber> PageNumbers<T> {
    fn new(kv_heads: usize, head_dim: usize) -> Self {
        Self {
            head_dim,
            keys: HeadNumbers::filled([T::ZERO; LANES], kv_heads, PAGE / LANES * head_dim),
            values: HeadNumbers::filled(T::ZERO, kv_heads, PAGE * head_dim),
        }
    }

    fn copy_from(&mut self, other: &Self) {
        self.keys.copy_from(&other.keys);
        self.values.copy_from(&other.values);
    }

    /// As [`Numbers::write`].
    unsafe fn write(&self, slot: usize, kv_head: usize, key: &[f32], value: &[f32]) {
        let head_dim = self.head_dim;
        let block = slot / LANES * head_dim;
        // SAFETY: the caller's promise.
        let block = unsafe { self.keys.part_mut(kv_head, block, head_dim) };
        let mut rounded = [T::ZERO; ROUNDED];
        for (block, key) in block.chunks_mut(ROUNDED).zip(key.chunks(ROUNDED)) {
            let rounded = &mut rounded[..key.len()];
            T::round(key, rounded);
            for (lanes, key) in block.iter_mut().zip(rounded) {
                lanes[slot % LANES] = *key;
            }
        }
        // SAFETY: as above.
        let held = unsafe { self.values.part_mut(kv_head, slot * head_dim, head_dim) };
        T::round(value, held);
    }

    /// As [`Numbers::read`].
    fn read(&self, slot: usize, kv_head: usize, key: &mut [f32], value: &mut [f32]) {
        let head_dim = self.head_dim;
        let block = &self.keys(kv_head)[slot / LANES * head_dim..][..head_dim];
        for (key, lanes) in key.iter_mut().zip(block) {
            *key = lanes[slot % LANES].to_f32();
        }
        let values = &self.values(kv_head)[slot * head_dim..][..head_dim];
        for (value, held) in value.iter_mut().zip(values) {
            *value = held.to_f32();
        }
    }

    /// Keys of `kv_head`, `(slots / 16, head_dim, 16)`.
    #[inline(always)]
    pub(crate) fn keys(&self, kv_head: usize) -> &[[T; LANES]] {
        self.keys.head(kv_head)
    }

    /// Values of `kv_head`, `(slots, head_dim)`.
    #[inline(always)]
    pub(crate) fn values(&self, kv_head: usize) -> &[T] {
        self.values.head(kv_head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the portable conversion of one number, which rounds to nearest, whatever instructions there are;
    /// but what is too large is no number.
    #[test]
    fn halves_are_the_nearest() {
        let numbers: Vec<f32> = (0..2_000_000_u32)
            .map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761)))
            .filter(|number| !number.is_nan())
            .chain([65_504.0, 65_519.9, 65_520.0, 1e-8, 5.96e-8, 2049.0, 2051.0])
            .collect();
        let mut halves = vec![f16::ZERO; numbers.len()];
        KvNumber::round(&numbers, &mut halves);
        for (number, half) in numbers.iter().zip(halves) {
            let expected = f16::from_f32_const(*number);
            if expected.is_infinite() {
                assert!(half.is_nan(), "{number:e}");
            } else {
                assert_eq!(half, expected, "{number:e}");
            }
        }
    }

    /// Blocks that are not full are counted whole.
    #[test]
    fn pages_take_as_much_memory_as_is_counted() {
        fn bytes_of<T: KvNumber>(held: &PageNumbers<T>) -> usize {
            let of_head = |head| size_of_val(held.keys(head)) + size_of_val(held.values(head));
            (0..2).map(of_head).sum()
        }
        let counted = |format: KvFormat, head_dim| 2 * 2 * PAGE * format.head_bytes(head_dim);
        for head_dim in [8, 64, 80] {
            for format in KvFormat::ALL {
                let taken = match Numbers::new(format, 2, head_dim) {
                    Numbers::Q8_0(held) => (0..2)
                        .map(|head| size_of_val(held.keys(head)) + size_of_val(held.values(head)))
                        .sum(),
                    Numbers::F16(held) => bytes_of(&held),
                    Numbers::F32(held) => bytes_of(&held),
                };
                assert_eq!(taken, counted(format, head_dim), "{format} {head_dim}");
            }
        }
        let sizes = KvFormat::ALL.map(|format| format.head_bytes(64));
        assert_eq!(sizes, [68, 128, 256]);
        assert_eq!(KvFormat::Q8_0.head_bytes(80), 102);
    }
}
