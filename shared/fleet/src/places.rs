//! Where conversations lie: which replica was given the beginning of a text, so that whoever goes on from it finds it computed
//! there.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use quick_cache::sync::Cache;
use speculation::TokenId;
use speculation::session::Peer;

use crate::PeerEndpoint;

/// Tokens of a page; about as many as engines share at a time.
const PAGE: usize = 64;

/// Most pages of a text that are told apart.
const MOST_PAGES: usize = 512;

/// Most pages remembered, of all texts.
const REMEMBERED: usize = 65_536;

/// No replica gets a conversation that lies there if it then had more than so many times the mean of sessions.
const MOST_OF_MEAN: f64 = 1.25;

/// The beginning of a text: for each of its pages a digest of all up to its end, and of whose the text is.
#[derive(Clone, Debug, Default)]
pub struct Beginning(Arc<[u64]>);

impl Beginning {
    /// Returns the beginning of `tokens`, of a text of `scope`; of an empty one none is shared.
    pub fn of(scope: &str, tokens: &[TokenId]) -> Self {
        if scope.is_empty() {
            return Self::default();
        }
        let mut hasher = DefaultHasher::new();
        scope.hash(&mut hasher);
        let pages = tokens.chunks_exact(PAGE).take(MOST_PAGES);
        let digests = pages.map(|page| {
            page.hash(&mut hasher);
            hasher.finish()
        });
        Self(digests.collect())
    }
}

/// The addresses of the replicas that beginnings lie at.
pub(crate) struct Places(Cache<(Peer, u64), Arc<str>>);

impl Default for Places {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Places({})", self.0.len())
    }
}

impl Places {
    /// Returns the address where the most of a text lies; none if nothing of it is known.
    pub(crate) fn find(&self, kind: Peer, beginning: &Beginning) -> Option<Arc<str>> {
        let pages = beginning.0.iter().rev();
        pages
            .into_iter()
            .find_map(|&page| self.0.get(&(kind, page)))
    }

    /// Records that a text is given to the replica at `address`.
    pub(crate) fn keep(&self, kind: Peer, beginning: &Beginning, address: &str) {
        let address: Arc<str> = address.into();
        for &page in &*beginning.0 {
            self.0.insert((kind, page), Arc::clone(&address));
        }
    }
}

/// Returns whether `replica` may get one more session, beside `all` that are alive.
pub(crate) fn has_room(replica: &PeerEndpoint, all: &[Arc<PeerEndpoint>]) -> bool {
    let alive = all.iter().filter(|it| it.is_alive());
    let sessions: Vec<_> = alive.map(|it| it.sessions()).collect();
    takes(replica.sessions(), &sessions)
}

/// Returns whether one that has `own` sessions may get one more, where these are those of all.
fn takes(own: usize, all: &[usize]) -> bool {
    let mean = (all.iter().sum::<usize>() + 1) as f64 / all.len().max(1) as f64;
    (own + 1) as f64 <= (MOST_OF_MEAN * mean).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(len: u32, last: u32) -> Vec<TokenId> {
        (0..len - 1).chain([last]).collect()
    }

    #[test]
    fn a_text_lies_where_the_most_of_it_was_given() {
        let places = Places::default();
        let find = |text: &[TokenId]| places.find(Peer::Verifier, &Beginning::of("ours", text));
        let keep = |text: &[TokenId], address: &str| {
            places.keep(Peer::Verifier, &Beginning::of("ours", text), address);
        };
        assert_eq!(find(&text(200, 7)), None);
        keep(&text(128, 127), "first");
        keep(&text(256, 255), "second");
        assert_eq!(find(&text(100, 7)).as_deref(), Some("second"));
        keep(&text(128, 1_000), "third");
        assert_eq!(find(&text(128, 1_000)).as_deref(), Some("third"));
        assert_eq!(find(&text(300, 7)).as_deref(), Some("second"));
        // A page that is not whole is no beginning; and nobody else's, and no other peer's, is one.
        assert_eq!(find(&text(63, 62)), None);
        let theirs = Beginning::of("theirs", &text(256, 255));
        assert_eq!(places.find(Peer::Verifier, &theirs), None);
        let ours = Beginning::of("ours", &text(256, 255));
        assert_eq!(places.find(Peer::Drafter, &ours), None);
        assert_eq!(Beginning::of("", &text(256, 255)).0.len(), 0);
    }

    #[test]
    fn a_replica_gets_no_more_than_its_share_and_a_quarter() {
        assert!(takes(0, &[0, 0]) && takes(0, &[0]));
        assert!(takes(4, &[4, 3]) && !takes(6, &[6, 2]));
        // However many go on from what lies at one.
        let mut all = [0; 4];
        for _ in 0..400 {
            let place = if takes(all[0], &all) {
                0
            } else {
                1 + all.iter().sum::<usize>() % 3
            };
            all[place] += 1;
            let mean = all.iter().sum::<usize>() as f64 / 4.0;
            assert!(all[0] as f64 <= (1.25 * mean).ceil(), "{all:?}");
        }
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let places = Places::default();
        for text in 0..3_000 {
            let tokens: Vec<_> = (0..4_096).map(|at| at * 3_001 + text).collect();
            places.keep(Peer::Verifier, &Beginning::of("ours", &tokens), "here");
        }
        assert!(places.0.len() <= REMEMBERED);
        let long: Vec<_> = (0..1_000_000).collect();
        assert_eq!(Beginning::of("ours", &long).0.len(), MOST_PAGES);
    }
}
