//! What a proposal calls the tokens before it.

use crate::TokenId;

/// Digest of tokens that follow each other: 32 bits in the place of all of them, which a peer compares with those of what it
/// holds. Two that differ in their last token alone never have the same. Others have by a chance of 2^-32; what grows on the
/// wrong one is a wrong draft, which costs nothing but its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathDigest(
    /// As it stands on the wire.
    pub u32,
);

/// An odd factor whose bits look random: 2^32 over the golden ratio.
const FACTOR: u32 = 0x9E37_79B1;

impl PathDigest {
    /// That of no token.
    pub const EMPTY: Self = Self(0);

    /// Returns the digest of the same tokens and `token` after them.
    #[must_use]
    pub fn then(self, token: TokenId) -> Self {
        // Without the 1 added, any number of tokens 0 would have the digest of none.
        let mixed = self.0.rotate_left(13) ^ token.wrapping_add(1);
        Self(mixed.wrapping_mul(FACTOR))
    }

    /// Returns the digest of `tokens`.
    pub fn of(tokens: &[TokenId]) -> Self {
        tokens
            .iter()
            .fold(Self::EMPTY, |digest, &token| digest.then(token))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_digest_is_what_the_protocol_says() {
        assert_eq!(PathDigest::of(&[]), PathDigest(0));
        assert_eq!(PathDigest::of(&[0]), PathDigest(0x9E37_79B1));
        assert_eq!(PathDigest::of(&[5, 48_999]), PathDigest(0x86C0_5771));
        assert_eq!(PathDigest::of(&[1, 2]), PathDigest(0xFA31_972E));
    }

    /// Of the 69,905 ways of up to four tokens of 16 one pair would share a digest by chance, about as likely as not.
    #[test]
    fn ways_that_differ_have_digests_that_differ() {
        let mut level = vec![PathDigest::EMPTY];
        let (mut digests, mut ways) = (HashSet::from([0]), 1);
        for _ in 0..4 {
            let longer = level.iter();
            level = longer
                .flat_map(|digest| (0..16).map(|token| digest.then(token)))
                .collect();
            ways += level.len();
            digests.extend(level.iter().map(|digest| digest.0));
        }
        assert!(ways - digests.len() <= 1, "{} of {ways}", digests.len());
    }
}
