//! The most frequent successor of each token.

use std::collections::HashMap;

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

    /// The table of a vocabulary of `vocab_size` tokens, counted in `streams`; pairs across two
    /// streams do not count. Ties go to the lowest id. A token that is never followed gets the most
    /// frequent token of all.
    ///
    /// # Errors
    /// If the vocabulary is empty or a token is not in it.
    pub fn count<S: AsRef<[TokenId]>>(
        streams: impl IntoIterator<Item = S>,
        vocab_size: usize,
    ) -> Result<Self, BadValue> {
        let mut single = vec![0_u64; vocab_size];
        let mut pairs: HashMap<(TokenId, TokenId), u64> = HashMap::new();
        for stream in streams {
            let stream = stream.as_ref();
            for &token in stream {
                let count = single.get_mut(token as usize);
                *count.ok_or_else(|| {
                    let problem = format!(
                        "token {token}, expected ids below the vocabulary's size {vocab_size}"
                    );
                    BadValue::new("bigram text", problem)
                })? += 1;
            }
            for pair in stream.windows(2) {
                *pairs.entry((pair[0], pair[1])).or_default() += 1;
            }
        }
        let most = (0..).zip(&single).fold((0, 0), better).1;
        let mut best = vec![(0, most); vocab_size];
        for (&(token, next), &count) in &pairs {
            let entry = &mut best[token as usize];
            *entry = better(*entry, (next, &count));
        }
        Self::new(best.into_iter().map(|(_, next)| next).collect())
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

/// The more frequent of the best so far (its count first) and another token; the lower id on ties.
fn better((most, best): (u64, TokenId), (token, &count): (TokenId, &u64)) -> (u64, TokenId) {
    if count > most || count == most && token < best && most > 0 {
        (count, token)
    } else {
        (most, best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_successor_wins_and_ties_go_to_the_lowest() {
        let streams = [vec![0, 1, 0, 2, 0, 1], vec![3, 2, 3, 1], vec![0, 2]];
        let table = Bigram::count(streams, 5).expect("a table");
        // 0 is followed by 1 and 2 twice each, 3 by 2 and 1 once each; 4 never occurs, and 0 is
        // the most frequent token.
        assert_eq!(table.table(), [1, 0, 0, 1, 0]);
        assert_eq!(table.next(99), Some(1));
        assert_eq!(Bigram::default().next(0), None);
        let last = Bigram::count([vec![2, 1, 1, 2, 2]], 4).expect("a table");
        assert_eq!(last.table(), [2, 1, 1, 2]);
        assert_eq!(
            Bigram::count([[]; 2], 3).expect("a table").table(),
            [0, 0, 0]
        );
    }

    #[test]
    fn a_table_names_tokens_of_its_vocabulary() {
        let empty = Bigram::new(vec![]).expect_err("no entries");
        assert!(empty.to_string().contains("no entries"), "{empty}");
        let outside = Bigram::new(vec![1, 0, 3]).expect_err("3 is none of three");
        assert!(outside.to_string().contains("entry 2 is 3"), "{outside}");
        let token = Bigram::count([vec![0, 7]], 3).expect_err("7 is none of three");
        assert!(token.to_string().contains("token 7"), "{token}");
    }
}
