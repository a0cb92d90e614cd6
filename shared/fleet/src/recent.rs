//! Values that were asked for lately.

use parking_lot::Mutex;

/// The values of the keys that were asked for lately, the latest last; at most `MOST`.
#[derive(Debug)]
pub(crate) struct Recent<K, V, const MOST: usize>(pub(crate) Mutex<Vec<(K, V)>>);

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, V: Clone + Default, const MOST: usize> Recent<K, V, MOST> {
    /// Returns the value of `key`: a new one if it is not known, for which the one asked for the longest time ago makes
    /// room.
    pub(crate) fn find(&self, key: K) -> V {
        let mut known = self.0.lock();
        let found = known.iter().position(|(other, _)| *other == key);
        let value = found.map(|at| known.remove(at).1).unwrap_or_default();
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((key, value.clone()));
        value
    }
}
