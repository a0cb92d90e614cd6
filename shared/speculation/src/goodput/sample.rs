//! Measures how long the target takes for a token when it decodes alone, although tokens come in bursts.

use std::time::Duration;

use super::price::Price;

/// Fewest tokens of a sample.
pub(super) const SAMPLE: u32 = 8;

/// Shortest time before the first token of a burst, in forwards of the verifier. The others of the burst were made
/// meanwhile and come at once, so a burst counts as a whole or not at all: a sample that began or ended within one
/// would be too fast or too slow.
const GAP: f64 = 0.5;

/// Shortest mean time of a token in a sample, in forwards of the verifier. No token takes much less than a forward;
/// tokens that waited for a slow client come faster and are not counted.
const SHORTEST: f64 = 0.7;

/// Longest time of a token in a sample, in forwards times the turns that sessions take in a full batch. A longer time
/// is that of a client that did not read.
const LONGEST: f64 = 32.0;

/// Tokens that the target decoded alone, and the seconds that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct TimedTokens {
    count: u32,
    seconds: f64,
}

impl TimedTokens {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.seconds += other.seconds;
    }
}

/// Whole bursts, until they are enough, and the burst under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct AloneSample {
    whole: TimedTokens,
    burst: Option<TimedTokens>,
}

impl AloneSample {
    /// Adds `count` tokens that took `took`, if their time counts, at a verifier with this load. Returns the mean
    /// seconds of a token once the sample is complete, and begins the next one; drops a burst that a client held up.
    pub(super) fn add(
        &mut self,
        count: u32,
        took: Option<Duration>,
        verifier: &Price,
    ) -> Option<f64> {
        let Some(took) = took else {
            self.burst = None;
            return None;
        };
        let seconds = took.as_secs_f64();
        let tokens = TimedTokens { count, seconds };
        let longest = LONGEST * verifier.forward * verifier.turns() * f64::from(count);
        if longest > 0.0 && seconds > longest {
            self.burst = None;
            return None;
        }
        if seconds < GAP * verifier.forward {
            if let Some(burst) = &mut self.burst {
                burst.add(tokens);
            }
            return None;
        }
        if let Some(burst) = self.burst.replace(tokens) {
            self.whole.add(burst);
        }
        if verifier.forward == 0.0 {
            // Bursts cannot be told apart at a peer that reports no load.
            self.whole.add(self.burst.take().unwrap_or_default());
        }
        if self.whole.count < SAMPLE {
            return None;
        }
        let TimedTokens { count, seconds } = std::mem::take(&mut self.whole);
        let each = seconds / f64::from(count);
        (each >= SHORTEST * verifier.forward).then_some(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds tokens one by one and returns the samples.
    fn samples(sample: &mut AloneSample, took: &[Option<u64>]) -> Vec<f64> {
        let verifier = Price::new(0.0, 1.0, 1.0, 0.3e-3);
        let add = |&us: &Option<u64>| sample.add(1, us.map(Duration::from_micros), &verifier);
        took.iter().filter_map(add).collect()
    }

    #[test]
    fn samples_begin_and_end_between_bursts() {
        let burst = [&[Some(4_000)][..], &[Some(0); 10]].concat();
        let mut sample = AloneSample::default();
        for each in samples(&mut sample, &burst.repeat(40)) {
            assert!((each - 4e-3 / 11.0).abs() < 1e-9, "{each}");
        }
        // Rests that begin and end within a burst, of tokens of which the first do not count.
        let mut sample = AloneSample::default();
        let rest = [
            &[None; 8],
            &[Some(0); 5][..],
            &burst,
            &[Some(2_000)],
            &[Some(0); 3],
        ]
        .concat();
        let found = samples(&mut sample, &rest.repeat(40));
        assert_eq!(found.len(), 40);
        for each in found {
            assert!((each - 4e-3 / 11.0).abs() < 1e-9, "{each}");
        }
    }

    #[test]
    fn a_client_that_does_not_read_makes_no_sample() {
        let mut sample = AloneSample::default();
        let held_up = [&[Some(1_000_000)][..], &[Some(0); 40]].concat();
        assert_eq!(samples(&mut sample, &held_up.repeat(10)), [0.0; 0]);
        let drained = [&[Some(1_000)][..], &[Some(0); 40]].concat();
        assert_eq!(samples(&mut sample, &drained.repeat(10)), [0.0; 0]);
    }
}
