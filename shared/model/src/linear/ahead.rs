//! What a kernel asks memory for while it computes.

/// Bytes ahead of its reading that a kernel asks memory for.
const SOON: usize = 14 << 10;

/// What a kernel asks memory for while it computes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ahead {
    /// Nothing.
    None,
    /// As many weights as it reads, from a little further on.
    Soon,
    /// As many weights as it reads, from here on: those of another matrix.
    From(*const i8),
    /// A half of the next chunk, the first or the second.
    Half(usize),
}

impl Ahead {
    /// Returns what the tile at `index` of `tiles` asks for. One tile reads as fast as memory delivers; of several the
    /// last two have time to spare.
    pub(super) fn of_tile(index: usize, tiles: usize) -> Self {
        match (index + 2).checked_sub(tiles) {
            _ if tiles == 1 => Self::Soon,
            Some(half) => Self::Half(half),
            None => Self::None,
        }
    }

    /// Where to begin, for a kernel that reads `weights`. It may be beyond all weights: memory is asked
    /// for hints only.
    pub(super) fn start<T>(self, weights: &[T]) -> *const i8 {
        let start = weights.as_ptr().cast::<i8>();
        let bytes = size_of_val(weights);
        match self {
            Self::None => start,
            Self::Soon => start.wrapping_add(SOON),
            Self::From(start) => start,
            Self::Half(half) => start.wrapping_add(bytes + half * (bytes / 2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::LINE;
    use super::*;

    #[test]
    fn the_last_two_tiles_ask_for_the_next_chunk() {
        let weights = [[0_u8; LINE]; 8];
        let of = |index, tiles| {
            let start = Ahead::of_tile(index, tiles).start(&weights);
            start as usize - weights.as_ptr() as usize
        };
        assert_eq!(of(0, 1), SOON);
        assert_eq!([of(0, 2), of(1, 2)], [512, 768]);
        assert_eq!([of(0, 4), of(1, 4), of(2, 4), of(3, 4)], [0, 0, 512, 768]);
    }
}
