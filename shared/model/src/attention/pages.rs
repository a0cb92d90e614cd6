//! Keys and values of a page as the kernels take them: numbers as they are held, blocks unpacked.

use std::marker::PhantomData;

use speculation::simd::Kernel;

use super::{
    ahead::NeededLines,
    lanes::{LaneNumber, Lanes},
};
use crate::cache::{
    KeyBlock, LANES, PAGE, PageBlocks, PageFormat, PageNumbers, ValueBlock, number,
};

/// Numbers of a block.
const BLOCK: usize = ValueBlock::NUMBERS;

/// Keys and values of a page as kernels read them. Where they are held otherwise, they are unpacked into `room` first, once for all
/// queries that go together.
pub(super) trait ReadPage: PageFormat {
    /// The number type that the kernels read keys and values in.
    type Number: LaneNumber;

    /// Keys of the first `16 * blocks` slots, `(4, head_dim, 16)`; whatever it is behind these.
    fn keys<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        blocks: usize,
        room: &'a mut Vec<f32>,
    ) -> &'a [[Self::Number; LANES]];

    /// Values of the first `slots` slots, `(64, head_dim)`; whatever it is behind these.
    fn values<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        slots: usize,
        room: &'a mut Vec<f32>,
    ) -> &'a [Self::Number];

    /// The value of one slot, `(head_dim)`.
    fn value<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        slot: usize,
        room: &'a mut Vec<f32>,
    ) -> &'a [Self::Number];

    /// Where the keys lie.
    fn key_lines(&self, kv_head: usize) -> NeededLines;

    /// Where the values lie.
    fn value_lines(&self, kv_head: usize) -> NeededLines;
}

impl<T: LaneNumber> ReadPage for PageNumbers<T>
where
    Self: PageFormat,
{
    type Number = T;

    #[inline(always)]
    fn keys<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        _blocks: usize,
        _room: &'a mut Vec<f32>,
    ) -> &'a [[T; LANES]] {
        self.keys(kv_head)
    }

    #[inline(always)]
    fn values<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        _slots: usize,
        _room: &'a mut Vec<f32>,
    ) -> &'a [T] {
        self.values(kv_head)
    }

    #[inline(always)]
    fn value<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        slot: usize,
        _room: &'a mut Vec<f32>,
    ) -> &'a [T] {
        &self.values(kv_head)[slot * self.head_dim()..][..self.head_dim()]
    }

    #[inline(always)]
    fn key_lines(&self, kv_head: usize) -> NeededLines {
        NeededLines::of(self.keys(kv_head))
    }

    #[inline(always)]
    fn value_lines(&self, kv_head: usize) -> NeededLines {
        NeededLines::of(self.values(kv_head))
    }
}

impl ReadPage for PageBlocks {
    type Number = f32;

    #[inline(always)]
    fn keys<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        blocks: usize,
        room: &'a mut Vec<f32>,
    ) -> &'a [[f32; LANES]] {
        let head_dim = self.head_dim();
        let keys = at_least(room, PAGE * head_dim).as_chunks_mut().0;
        L::run(UnpackedKeys::<L> {
            blocks: &self.keys(kv_head)[..blocks * self.blocks()],
            head_dim,
            keys,
            lanes: PhantomData,
        });
        keys
    }

    #[inline(always)]
    fn values<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        slots: usize,
        room: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let head_dim = self.head_dim();
        let values = at_least(room, PAGE * head_dim);
        L::run(UnpackedValues::<L> {
            blocks: &self.values(kv_head)[..slots * self.blocks()],
            head_dim,
            values,
            lanes: PhantomData,
        });
        values
    }

    #[inline(always)]
    fn value<'a, L: Lanes>(
        &'a self,
        kv_head: usize,
        slot: usize,
        room: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let head_dim = self.head_dim();
        let value = at_least(room, head_dim);
        L::run(UnpackedValues::<L> {
            blocks: &self.values(kv_head)[slot * self.blocks()..][..self.blocks()],
            head_dim,
            values: value,
            lanes: PhantomData,
        });
        value
    }

    #[inline(always)]
    fn key_lines(&self, kv_head: usize) -> NeededLines {
        NeededLines::of(self.keys(kv_head))
    }

    #[inline(always)]
    fn value_lines(&self, kv_head: usize) -> NeededLines {
        NeededLines::of(self.values(kv_head))
    }
}

/// The first `count` numbers of `room`, whatever they are.
#[inline(always)]
fn at_least(room: &mut Vec<f32>, count: usize) -> &mut [f32] {
    if room.len() < count {
        room.resize(count, 0.0);
    }
    &mut room[..count]
}

/// Blocks of keys, `(slots / 16, blocks of a head)`, to be unpacked.
struct UnpackedKeys<'a, L> {
    blocks: &'a [KeyBlock],
    head_dim: usize,
    /// `(slots / 16, head_dim, 16)`.
    keys: &'a mut [[f32; LANES]],
    lanes: PhantomData<L>,
}

impl<L: Lanes> Kernel for UnpackedKeys<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let of_slots = self.blocks.chunks_exact(self.head_dim.div_ceil(BLOCK));
        for (blocks, keys) in of_slots.zip(self.keys.chunks_exact_mut(self.head_dim)) {
            for (block, keys) in blocks.iter().zip(keys.chunks_mut(BLOCK)) {
                let scales = L::load_half(&block.scales);
                for (quants, keys) in block.quants.iter().zip(keys) {
                    L::load_bytes(quants).times(scales).store(keys);
                }
            }
        }
    }
}

/// Blocks of values, `(slots, blocks of a head)`, to be unpacked.
struct UnpackedValues<'a, L> {
    blocks: &'a [ValueBlock],
    head_dim: usize,
    /// `(slots, head_dim)`.
    values: &'a mut [f32],
    lanes: PhantomData<L>,
}

impl<L: Lanes> Kernel for UnpackedValues<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let of_slots = self.blocks.chunks_exact(self.head_dim.div_ceil(BLOCK));
        for (blocks, value) in of_slots.zip(self.values.chunks_exact_mut(self.head_dim)) {
            let (whole, rest) = value.as_chunks_mut::<BLOCK>();
            for (block, value) in blocks.iter().zip(&mut *whole) {
                unpack::<L>(block, value);
            }
            if let Some(block) = blocks.get(whole.len()) {
                unpack::<L>(block, rest);
            }
        }
    }
}

/// Unpacks a block, or the first of its numbers.
#[inline(always)]
fn unpack<L: Lanes>(block: &ValueBlock, value: &mut [f32]) {
    let scale = L::splat_half(block.scale);
    let (lanes, last) = value.as_chunks_mut::<LANES>();
    let (quants, _) = block.quants.as_chunks::<LANES>();
    let rest = &block.quants[lanes.len() * LANES..];
    for (value, quants) in lanes.iter_mut().zip(quants) {
        L::load_bytes(quants).times(scale).store(value);
    }
    if !last.is_empty() {
        let scale = block.scale.to_f32();
        for (value, quant) in last.iter_mut().zip(rest) {
            *value = number(*quant, scale);
        }
    }
}
