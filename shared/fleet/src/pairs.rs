//! Which draft model drafts for a target that has drafters of several: that of the pair which brings most, by what requests
//! measured. What is measured of one pair says nothing of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use speculation::ahead::Findings;
use speculation::goodput::Estimator;
use wire::v1::PeerDescription;

/// Requests that a pair is given until it is measured; after that it counts as one that brings nothing.
const FIRST_TRIES: u32 = 8;

/// One request in so many goes to a pair that is not the best, for what was measured grows old.
const TRIES: u32 = 16;

/// A draft model, by its name and the fingerprint of its weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DraftModel {
    name: Arc<str>,
    fingerprint: Arc<str>,
}

impl DraftModel {
    /// Returns the draft model of the drafter that describes itself so.
    pub(crate) fn of(drafter: &PeerDescription) -> Self {
        Self {
            name: Arc::from(&drafter.model[..]),
            fingerprint: Arc::from(&drafter.model_fingerprint[..]),
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns whether it is that of the drafter that describes itself so.
    pub(crate) fn is_of(&self, drafter: &PeerDescription) -> bool {
        *self.name == drafter.model && *self.fingerprint == drafter.model_fingerprint
    }
}

/// What requests of a kind measured with one draft model.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// In rounds, for draft lengths that follow it.
    pub rounds: Estimator,
    /// In streams: whether drafts that are made ahead are worth their way.
    pub streams: Findings,
    turns: Arc<Turns>,
}

#[derive(Debug, Default)]
struct Turns {
    /// Requests that were given to the pair.
    begun: AtomicU32,
    /// The gain that was told last, as bits; 0 before the first time.
    told: AtomicU64,
}

impl Measured {
    /// Records that a request is given to the pair.
    pub(crate) fn begin(&self) {
        self.turns.begun.fetch_add(1, Relaxed);
    }

    /// Whether it is to be told that the pair pays, or does not: it is known for the first time, or has changed.
    pub(crate) fn is_news(&self, gain: f64) -> bool {
        let before = f64::from_bits(self.turns.told.swap(gain.to_bits(), Relaxed));
        before == 0.0 || (before > 1.0) != (gain > 1.0)
    }
}

/// A pair among which is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Measured speed over that of the target alone, if it is known.
    pub(crate) gain: Option<f64>,
    /// Requests that were given to it.
    pub(crate) begun: u32,
}

impl Candidate {
    /// Returns the pair that `measured` was measured of.
    pub(crate) fn of(measured: &Measured, gain: Option<f64>) -> Self {
        Self {
            gain,
            begun: measured.turns.begun.load(Relaxed),
        }
    }
}

/// Returns the place of the pair that the next request is given to; none if there is no pair.
pub(crate) fn choose(pairs: &[Candidate]) -> Option<usize> {
    let places = || pairs.iter().enumerate();
    let fewest = |(_, pair): &(usize, &Candidate)| pair.begun;
    let unknown = places().filter(|(_, pair)| pair.gain.is_none() && pair.begun < FIRST_TRIES);
    if let Some((at, _)) = unknown.min_by_key(fewest) {
        return Some(at);
    }
    let gain = |pair: &Candidate| pair.gain.unwrap_or_default();
    let (best, _) = places()
        .rev()
        .max_by(|(_, one), (_, other)| gain(one).total_cmp(&gain(other)))?;
    let begun: u32 = pairs.iter().map(|pair| pair.begun).sum();
    let others = places().filter(|&(at, _)| at != best);
    match others.min_by_key(fewest) {
        Some((other, _)) if begun % TRIES == TRIES - 1 => Some(other),
        _ => Some(best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many requests to pairs with these gains, which are known once a pair had `known` requests. Returns how many each got.
    fn given(requests: u32, gains: &[f64], known: u32) -> Vec<u32> {
        let mut begun = vec![0; gains.len()];
        for _ in 0..requests {
            let pairs = gains.iter().zip(&begun).map(|(&gain, &begun)| Candidate {
                gain: (begun >= known).then_some(gain),
                begun,
            });
            let pairs: Vec<_> = pairs.collect();
            begun[choose(&pairs).expect("a pair")] += 1;
        }
        begun
    }

    #[test]
    fn the_pair_that_brings_most_gets_all_but_the_tries() {
        assert_eq!(choose(&[]), None);
        assert_eq!(given(100, &[0.5], 1), [100]);
        let begun = given(1_600, &[1.1, 1.4, 0.8], 2);
        assert!(
            begun[1] > 1_490 && begun[0] >= 50 && begun[2] >= 45,
            "{begun:?}"
        );
        // Of pairs alike the first.
        assert!(given(160, &[1.2, 1.2], 1)[0] > 140);
    }

    #[test]
    fn a_pair_that_is_never_measured_is_given_up() {
        let begun = given(1_600, &[1.1, 1.4], u32::MAX);
        assert!(begun[1] <= FIRST_TRIES + 1_600 / TRIES, "{begun:?}");
    }

    #[test]
    fn whether_a_pair_pays_is_told_once() {
        let measured = Measured::default();
        let told = [1.2, 1.3, 0.9, 0.8, 1.1].map(|gain| measured.is_news(gain));
        assert_eq!(told, [true, false, true, false, true]);
    }
}
