//! Which token follows each token most often, counted in text.

use std::collections::HashMap;

use speculation::TokenId;
use speculation::bad_value::BadValue;
use speculation::max_gram::Bigram;

/// The table of a vocabulary of `vocab_size` tokens, counted in `streams`; pairs across two
/// streams do not count. Ties go to the lowest id. A token that is never followed gets the most
/// frequent token of all.
///
/// # Errors
/// If the vocabulary is empty or a token is not in it.
pub(super) fn count<S: AsRef<[TokenId]>>(
    streams: impl IntoIterator<Item = S>,
    vocab_size: usize,
) -> Result<Bigram, BadValue> {
    let mut single = vec![0_u64; vocab_size];
    let mut pairs: HashMap<(TokenId, TokenId), u64> = HashMap::new();
    for stream in streams {
        let stream = stream.as_ref();
        for &token in stream {
            let count = single.get_mut(token as usize);
            *count.ok_or_else(|| {
                let problem =
                    format!("token {token}, expected ids below the vocabulary's size {vocab_size}");
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
    Bigram::new(best.into_iter().map(|(_, next)| next).collect())
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
        let table = count(streams, 5).expect("a table");
        // 0 is followed by 1 and 2 twice each, 3 by 2 and 1 once each; 4 never occurs, and 0 is
        // the most frequent token.
        assert_eq!(table.table(), [1, 0, 0, 1, 0]);
        let last = count([vec![2, 1, 1, 2, 2]], 4).expect("a table");
        assert_eq!(last.table(), [2, 1, 1, 2]);
        assert_eq!(count([[]; 2], 3).expect("a table").table(), [0, 0, 0]);
        let token = count([vec![0, 7]], 3).expect_err("7 is none of three");
        assert!(token.to_string().contains("token 7"), "{token}");
    }
}
