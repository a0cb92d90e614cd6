//! When requests are sent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Gamma};

/// Most requests a second.
const HIGHEST_RATE: f64 = 1e5;

/// How many requests are sent each second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    PerSecond(f64),
    /// Each as soon as it may be.
    Unlimited,
}

/// What is no rate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected requests a second, above 0 and at most {HIGHEST_RATE}, or inf")]
pub(super) struct BadRate;

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Self, BadRate> {
        if text == "inf" {
            return Ok(Self::Unlimited);
        }
        let rate = text.parse().map_err(|_| BadRate)?;
        if rate > 0.0 && rate <= HIGHEST_RATE {
            Ok(Self::PerSecond(rate))
        } else {
            Err(BadRate)
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => rate.fmt(out),
            Self::Unlimited => out.write_str("inf"),
        }
    }
}

impl Rate {
    /// Returns when each of `count` requests is due, the first one at 0. Equal seeds give equal times.
    ///
    /// The times between them follow a gamma distribution of shape `burstiness` (`infinity`: all are equal), which at 1 is
    /// that of a Poisson process, and are scaled to `count` requests in `count / rate` seconds, so that seeds differ in
    /// where requests crowd and not in how many there are: as `vllm bench serve` does it.
    pub(super) fn schedule(self, burstiness: f64, count: usize, seed: u64) -> Vec<Duration> {
        let Self::PerSecond(rate) = self else {
            return vec![Duration::ZERO; count];
        };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Of a shape that is not finite and positive there is none; then all are equal.
        let gamma = Gamma::new(burstiness, 1.0)
            .ok()
            .filter(|_| burstiness.is_finite());
        let gaps = (0..count).map(|_| match &gamma {
            Some(gamma) => gamma.sample(&mut random),
            None => 1.0,
        });
        let gaps: Vec<f64> = gaps.collect();
        let sum: f64 = gaps.iter().sum();
        let scale = if sum > 0.0 {
            count as f64 / rate / sum
        } else {
            0.0
        };
        let due = gaps.iter().scan(0.0, |at, gap| {
            let due = *at;
            *at += gap * scale;
            Some(Duration::from_secs_f64(due))
        });
        due.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(due: &[Duration]) -> Vec<f64> {
        due.windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]).as_secs_f64())
            .collect()
    }

    /// The mean of the gaps, and their standard deviation as a multiple of it.
    fn spread(due: &[Duration]) -> (f64, f64) {
        let gaps = gaps(due);
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let squares: f64 = gaps.iter().map(|gap| (gap - mean).powi(2)).sum();
        (mean, (squares / count).sqrt() / mean)
    }

    #[test]
    fn arrivals_are_a_poisson_process_of_the_rate() {
        let due = Rate::PerSecond(50.0).schedule(1.0, 4000, 7);
        assert_eq!((due.len(), due[0]), (4000, Duration::ZERO));
        assert!(due.is_sorted());
        // Of an exponential distribution both are equal, and a share of exp(-1) is longer than the mean.
        let (mean, deviation) = spread(&due);
        assert!((mean - 0.02).abs() < 1e-4, "{mean}");
        assert!((deviation - 1.0).abs() < 0.1, "{deviation}");
        let longer = gaps(&due).into_iter().filter(|gap| *gap > mean).count() as f64 / 3999.0;
        assert!((longer - (-1.0_f64).exp()).abs() < 0.03, "{longer}");
    }

    #[test]
    fn burstiness_crowds_arrivals_and_the_rate_stays() {
        let schedule = |burstiness| spread(&Rate::PerSecond(10.0).schedule(burstiness, 4000, 7));
        let [crowded, even, equal] = [0.25, 16.0, f64::INFINITY].map(schedule);
        assert!((crowded.1 - 2.0).abs() < 0.2, "{crowded:?}");
        assert!((even.1 - 0.25).abs() < 0.03, "{even:?}");
        assert!(equal.1 < 1e-6, "{equal:?}");
        for (mean, _) in [crowded, even, equal] {
            assert!((mean - 0.1).abs() < 2e-3, "{mean}");
        }
    }

    #[test]
    fn a_seed_repeats_its_arrivals() {
        let schedule = |seed| Rate::PerSecond(3.0).schedule(1.0, 20, seed);
        assert_eq!(schedule(1), schedule(1));
        assert_ne!(schedule(1), schedule(2));
        assert_eq!(Rate::Unlimited.schedule(1.0, 3, 1), [Duration::ZERO; 3]);
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        assert_eq!("2.5".parse(), Ok(Rate::PerSecond(2.5)));
        assert_eq!("inf".parse(), Ok(Rate::Unlimited));
        for text in ["0", "-1", "nan", "infinity", "1e6", "fast", ""] {
            assert_eq!(text.parse::<Rate>(), Err(BadRate), "{text}");
        }
    }
}
