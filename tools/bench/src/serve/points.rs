//! Load points: how hard a server is asked.

use std::str::FromStr;

use clap::Args;

use super::arrivals::Rate;

/// How hard it is asked: a load point is measured for each rate with each number of requests at once.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadPointArgs {
    /// Requests sent a second, at random times of a Poisson process, whether earlier ones are answered or not: what many
    /// users do who do not know of one another. `inf` sends each at once, or as soon as --concurrency lets it.
    #[arg(long, value_name = "RATES", value_delimiter = ',')]
    rate: Vec<Rate>,
    /// Most requests at once; what is due beyond that waits, and its time counts from when it is sent. `inf` is no limit.
    /// Without it, 1 where there is no --rate, and no limit where there is.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    concurrency: Vec<Concurrency>,
    /// How arrivals crowd: below 1 more than in a Poisson process, above 1 less, `inf` not at all. The shape of the gamma
    /// distribution of the times between them, as in vLLM's benchmark.
    #[arg(long, value_name = "SHAPE", default_value_t = 1.0)]
    pub(super) burstiness: f64,
    /// Requests before the first load point, one after another, which do not count.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) warmup: usize,
}

/// Most requests at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Concurrency(pub(super) Option<usize>);

/// Most requests that may be open at once.
const MOST_AT_ONCE: usize = 10_000;

/// What is no number of requests at once.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number of requests, 1 to {MOST_AT_ONCE}, or inf")]
pub(super) struct BadConcurrency;

impl FromStr for Concurrency {
    type Err = BadConcurrency;

    fn from_str(text: &str) -> Result<Self, BadConcurrency> {
        if text == "inf" {
            return Ok(Self(None));
        }
        let number = text.parse().map_err(|_| BadConcurrency)?;
        let is_in_range = (1..=MOST_AT_ONCE).contains(&number);
        is_in_range
            .then_some(Self(Some(number)))
            .ok_or(BadConcurrency)
    }
}

impl LoadPointArgs {
    /// Returns the load points, in the order they are measured in.
    pub(super) fn points(&self) -> Vec<(Rate, Concurrency)> {
        let (rates, at_once) = match (&self.rate[..], &self.concurrency[..]) {
            ([], []) => (&[Rate::Unlimited][..], &[Concurrency(Some(1))][..]),
            ([], at_once) => (&[Rate::Unlimited][..], at_once),
            (rates, []) => (rates, &[Concurrency(None)][..]),
            both => both,
        };
        let with = |rate: &Rate| {
            let rate = *rate;
            at_once.iter().map(move |&limit| (rate, limit))
        };
        rates.iter().flat_map(with).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    #[test]
    fn load_points_are_all_rates_with_all_numbers_at_once() {
        let points = |flags: &[&str]| parsed::<LoadPointArgs>(flags).points();
        let unlimited = Rate::Unlimited;
        let [one, eight, all] = [Some(1), Some(8), None].map(Concurrency);
        assert_eq!(points(&[]), [(unlimited, one)]);
        assert_eq!(
            points(&["--concurrency=1,8"]),
            [(unlimited, one), (unlimited, eight)]
        );
        let two = Rate::PerSecond(2.0);
        assert_eq!(points(&["--rate=2,inf"]), [(two, all), (unlimited, all)]);
        let both = points(&["--rate=2,inf", "--concurrency=8,inf"]);
        let expected = [
            (two, eight),
            (two, all),
            (unlimited, eight),
            (unlimited, all),
        ];
        assert_eq!(both, expected);
    }

    #[test]
    fn what_is_no_number_of_requests_is_refused() {
        for text in ["0", "10001", "-1", "many"] {
            assert_eq!(text.parse::<Concurrency>(), Err(BadConcurrency), "{text}");
        }
    }
}
