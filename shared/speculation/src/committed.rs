//! A peer's record of the output, kept right by every request.

use crate::TokenId;

/// The output tokens a peer believes committed. Each request says them anew from some position on,
/// so there is no rollback call, and a retry changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    tokens: Vec<TokenId>,
}

/// The peer holds less than a request builds on; it must be asked again from `from` or before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only {from} output tokens are held")]
pub struct NeedFrom {
    /// Output tokens held.
    pub from: u32,
}

impl Committed {
    /// The tokens.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Takes over `committed` from position `from_len` on, dropping whatever stood there.
    ///
    /// # Errors
    /// If fewer than `from_len` tokens are held; nothing changes then.
    pub fn replace_from(&mut self, from_len: usize, committed: &[TokenId]) -> Result<(), NeedFrom> {
        if from_len > self.tokens.len() {
            return Err(NeedFrom {
                from: self.tokens.len() as u32,
            });
        }
        self.tokens.truncate(from_len);
        self.tokens.extend_from_slice(committed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_sets_the_record_right() {
        let mut committed = Committed::default();
        assert_eq!(committed.replace_from(1, &[5]), Err(NeedFrom { from: 0 }));
        assert_eq!(committed.replace_from(0, &[1, 2, 3]), Ok(()));
        assert_eq!(committed.replace_from(2, &[9]), Ok(()));
        assert_eq!(committed.tokens(), [1, 2, 9]);
        // A retry is harmless, and a shorter record drops what stood beyond.
        assert_eq!(committed.replace_from(2, &[9]), Ok(()));
        assert_eq!(committed.replace_from(1, &[]), Ok(()));
        assert_eq!(committed.tokens(), [1]);
    }
}
