//! The most frequent successor of each token.

use crate::TokenId;
use crate::bad_value::BadValue;

/// For each token the one that follows it most often: what Max-Gram proposes where it has nothing to
/// copy. The empty table, [`Bigram::default`], knows no token's successor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bigram {
    next: Vec<TokenId>,
}

impl Bigram {
    /// The table `next` (vocab) of each token's successor.
    ///
    /// # Errors
    /// If it is empty, or names a successor that is not below its length.
    pub fn new(next: Vec<TokenId>) -> Result<Self, BadValue> {
        let vocab_size = next.len();
        if vocab_size == 0 {
            let problem = "no entries, expected one for each token of the vocabulary";
            return Err(BadValue::new("bigram table", problem));
        }
        let outside = |&(_, next): &(usize, &TokenId)| *next as usize >= vocab_size;
        match next.iter().enumerate().find(outside) {
            Some((token, next)) => {
                let problem = format!(
                    "entry {token} is {next}, expected a token id below the vocabulary's size {vocab_size}"
                );
                Err(BadValue::new("bigram table", problem))
            }
            None => Ok(Self { next }),
        }
    }

    /// Returns the successor of `token`; that of token 0 if the table does not know it, as in the padded
    /// tail of a vocabulary. The empty table has none.
    pub fn next(&self, token: TokenId) -> Option<TokenId> {
        let known = self.next.get(token as usize);
        known.or(self.next.first()).copied()
    }

    /// The table (vocab).
    pub fn table(&self) -> &[TokenId] {
        &self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_tokens_of_its_vocabulary() {
        let empty = Bigram::new(vec![]).expect_err("no entries");
        assert!(empty.to_string().contains("no entries"), "{empty}");
        let outside = Bigram::new(vec![1, 0, 3]).expect_err("3 is none of three");
        assert!(outside.to_string().contains("entry 2 is 3"), "{outside}");
        let table = Bigram::new(vec![1, 0, 0]).expect("a table");
        assert_eq!((table.next(0), table.next(99)), (Some(1), Some(1)));
        assert_eq!(Bigram::default().next(0), None);
    }
}
