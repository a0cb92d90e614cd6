//! What the target chose, told to a round that drafts ahead.

use std::sync::Arc;

use parking_lot::Mutex;
use speculation::TokenId;
use tokio::sync::Notify;
use wire::status::BadField;
use wire::v1;

/// Most tokens that are told before the round takes them.
const MOST: usize = 1 << 16;

/// The receiving end of a round's commits, which are joined until they are taken.
#[derive(Clone, Debug, Default)]
pub struct Commits(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    latest: Mutex<Option<Commit>>,
    came: Notify,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Committing(Arc<Told>);

/// What the target chose since the commit before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// Output position of the first token.
    pub from: u32,
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// Draft tokens that there is room for.
    pub credit: u32,
    /// Least probability of standing that is worth drafting.
    pub price: f32,
}

impl Commit {
    /// Returns its tokens beyond the first `known` of the output.
    ///
    /// # Errors
    /// If there is a gap before it, or a token is not in the vocabulary.
    pub fn beyond(&self, known: usize, vocab_size: u32) -> Result<&[TokenId], BadField> {
        BadField::in_vocabulary("commit.token_ids", &self.tokens, vocab_size)?;
        let Some(repeated) = known.checked_sub(self.from as usize) else {
            let problem = format!("{} is behind the end of the output, {known}", self.from);
            return Err(BadField::new("commit.from", problem));
        };
        Ok(self.tokens.get(repeated..).unwrap_or_default())
    }
}

/// Returns both ends for a round that begins now.
pub(crate) fn commits() -> (Committing, Commits) {
    let told = Arc::<Told>::default();
    (Committing(Arc::clone(&told)), Commits(told))
}

impl Committing {
    /// Adds a commit to those that were not taken yet.
    ///
    /// # Errors
    /// If tokens are missing before it, or too many were not taken.
    pub(crate) fn join(&self, wire: &v1::Commit) -> Result<(), BadField> {
        let mut latest = self.0.latest.lock();
        let told = latest.get_or_insert_with(|| Commit {
            from: wire.from,
            ..Commit::default()
        });
        let known = told.from as usize + told.tokens.len();
        let (from, before) = (wire.from as usize, told.from as usize);
        if from > known {
            let problem = format!("{from} is behind the end of the output so far, {known}");
            return Err(BadField::new("commit.from", problem));
        }
        // What repeats tokens that were taken says nothing new of them.
        let new = wire.token_ids.get(before.saturating_sub(from)..);
        told.tokens.truncate(from.saturating_sub(before));
        told.tokens.extend_from_slice(new.unwrap_or_default());
        (told.credit, told.price) = (wire.credit, wire.price);
        BadField::at_most("commit.token_ids", told.tokens.len(), MOST, "tokens")?;
        drop(latest);
        self.0.came.notify_one();
        Ok(())
    }
}

impl Commits {
    /// Returns what was told since the last call, if anything was.
    pub fn take(&self) -> Option<Commit> {
        self.0.latest.lock().take()
    }

    /// Waits until something is told that was not taken; it may return too early.
    pub async fn came(&self) {
        self.0.came.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(from: u32, token_ids: &[TokenId], credit: u32) -> v1::Commit {
        v1::Commit {
            from,
            token_ids: token_ids.to_vec(),
            credit,
            price: 0.5,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn commits_are_joined_until_they_are_taken() {
        let (committing, commits) = commits();
        assert_eq!(commits.take(), None);
        committing.join(&commit(7, &[1, 2], 5)).expect("the first");
        committing.join(&commit(9, &[3], 0)).expect("the next");
        // Repeated from further back.
        committing.join(&commit(8, &[2, 3, 4], 9)).expect("more");
        committing
            .join(&commit(3, &[0, 0, 0, 0, 1, 2, 3, 4], 8))
            .expect("all");
        commits.came().await;
        let joined = Commit {
            from: 7,
            tokens: vec![1, 2, 3, 4],
            credit: 8,
            price: 0.5,
        };
        assert_eq!(commits.take(), Some(joined));
        assert_eq!(commits.take(), None);
        let waited = tokio::time::timeout(std::time::Duration::from_secs(1), commits.came());
        assert!(waited.await.is_err(), "nothing came since");
    }

    #[test]
    fn what_is_known_is_not_told_twice() {
        let commit = Commit {
            from: 3,
            tokens: vec![5, 6],
            ..Commit::default()
        };
        for (known, new) in [(3, &[5, 6][..]), (4, &[6]), (5, &[]), (9, &[])] {
            assert_eq!(commit.beyond(known, 7), Ok(new), "{known}");
        }
        let fields =
            [commit.beyond(2, 7), commit.beyond(3, 6)].map(|bad| bad.expect_err("bad").field);
        assert_eq!(fields, ["commit.from", "commit.token_ids"]);
    }

    #[test]
    fn gaps_and_floods_are_refused_by_their_field() {
        let (committing, commits) = commits();
        committing.join(&commit(7, &[1, 2], 5)).expect("the first");
        let gap = committing.join(&commit(10, &[4], 5)).expect_err("a gap");
        assert_eq!(
            gap.to_string(),
            "commit.from: 10 is behind the end of the output so far, 9"
        );
        let many = committing
            .join(&commit(9, &vec![1; MOST], 5))
            .expect_err("a flood");
        assert_eq!(many.field, "commit.token_ids");
        drop(commits);
    }
}
