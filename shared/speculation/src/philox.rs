//! Philox4x32-10, a counter-based random number generator.
//!
//! Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011), with the
//! constants of Random123. A block is a pure function of counter and key: nothing is stored, so a
//! retry draws the same numbers, and any number can be drawn without those before it.

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Number of blocks [`philox_lanes`] makes at once.
pub const LANES: usize = 16;

/// The block of four words for one counter under one key.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let a = u64::from(MULTIPLIER[0]) * u64::from(c0);
        let b = u64::from(MULTIPLIER[1]) * u64::from(c2);
        (c0, c1, c2, c3) = (
            (b >> 32) as u32 ^ c1 ^ k0,
            b as u32,
            (a >> 32) as u32 ^ c3 ^ k1,
            a as u32,
        );
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [c0, c1, c2, c3]
}

/// Words 0 and 1 of the blocks whose first counter word is `first`, `first + 1`, …; the other
/// three words are shared. The same numbers as [`philox`], written over lanes so that it
/// vectorises: this is the inner loop of coupled sampling over a vocabulary.
///
/// Words stand in 64 bits, and what is above their 32 is only cut off where it counts. So a product takes
/// one instruction, and its halves need not be shuffled together: half the time of words of 32 bits.
#[inline(always)]
pub fn philox_lanes(first: u32, rest: [u32; 3], key: [u32; 2]) -> [[u64; LANES]; 2] {
    const LOW: u64 = u32::MAX as u64;
    let mut c0 = [0; LANES];
    for (lane, word) in c0.iter_mut().enumerate() {
        *word = u64::from(first.wrapping_add(lane as u32));
    }
    let [mut c1, mut c2, mut c3] = rest.map(|word| [u64::from(word); LANES]);
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        for lane in 0..LANES {
            let a = u64::from(MULTIPLIER[0]) * (c0[lane] & LOW);
            let b = u64::from(MULTIPLIER[1]) * (c2[lane] & LOW);
            c0[lane] = (b >> 32) ^ c1[lane] ^ u64::from(k0);
            c1[lane] = b;
            c2[lane] = (a >> 32) ^ c3[lane] ^ u64::from(k1);
            c3[lane] = a;
        }
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    for lane in 0..LANES {
        c0[lane] &= LOW;
        c1[lane] &= LOW;
    }
    [c0, c1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors of Random123's `kat_vectors` for `philox4x32 10`.
    #[test]
    fn matches_the_published_known_answers() {
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn lanes_are_the_same_blocks() {
        let (rest, key) = ([7, 8, 9], [10, 11]);
        for first in [0, 4088, u32::MAX - 3] {
            let lanes = philox_lanes(first, rest, key);
            for (lane, (&word0, &word1)) in lanes[0].iter().zip(&lanes[1]).enumerate() {
                let counter = [first.wrapping_add(lane as u32), rest[0], rest[1], rest[2]];
                let block = philox(counter, key);
                assert_eq!([word0, word1], [block[0], block[1]].map(u64::from));
            }
        }
    }
}
