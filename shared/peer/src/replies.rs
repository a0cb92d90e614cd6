//! The latest replies of a session, so that a retry gets the same answer without being executed.

use std::collections::VecDeque;

use smart_default::SmartDefault;

/// Replies kept: the round under way, and the one before it, whose retry may still be on its way.
const KEPT: usize = 2;

/// The latest replies, found by what they answer.
#[derive(Clone, Debug, SmartDefault)]
pub struct ReplyCache<K, R> {
    #[default(VecDeque::with_capacity(KEPT))]
    kept: VecDeque<(K, R)>,
}

impl<K: PartialEq, R> ReplyCache<K, R> {
    /// Returns the reply to `key`, if it is still kept.
    pub fn find(&self, key: &K) -> Option<&R> {
        let found = self.kept.iter().find(|(kept, _)| kept == key);
        found.map(|(_, reply)| reply)
    }

    /// Keeps the reply to `key`, and drops the oldest.
    pub fn keep(&mut self, key: K, reply: R) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((key, reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_found_and_the_oldest_forgotten() {
        let mut replies = ReplyCache::default();
        for key in 0..=KEPT {
            replies.keep(key, key * 10);
        }
        assert_eq!(replies.find(&0), None);
        assert_eq!(replies.find(&KEPT), Some(&(KEPT * 10)));
        assert_eq!(replies.find(&1), Some(&10));
    }
}
