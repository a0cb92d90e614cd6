//! How fast a request must be answered to count (goodput).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::answer::Answer;

/// Limits of what a request may take; those left out are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slo {
    ttft: Option<Duration>,
    tpot: Option<Duration>,
    e2e: Option<Duration>,
}

/// What is wrong with a list of limits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadSlo {
    #[error("'{0}' is no limit, expected one like ttft:200ms, tpot:20ms or e2e:2s")]
    Form(String),
    #[error("'{0}' is limited twice")]
    Twice(String),
    #[error("'{0}' is no time, expected a number above 0 and its unit, as in 20ms or 1.5s")]
    Time(String),
}

impl FromStr for Slo {
    type Err = BadSlo;

    fn from_str(text: &str) -> Result<Self, BadSlo> {
        let mut slo = Self::default();
        for part in text.split(',').map(str::trim) {
            let bad_form = || BadSlo::Form(part.to_owned());
            let (name, limit) = part.split_once(':').ok_or_else(bad_form)?;
            let place = match name {
                "ttft" => &mut slo.ttft,
                "tpot" => &mut slo.tpot,
                "e2e" => &mut slo.e2e,
                _ => return Err(bad_form()),
            };
            let time = time(limit).ok_or_else(|| BadSlo::Time(limit.to_owned()))?;
            if place.replace(time).is_some() {
                return Err(BadSlo::Twice(name.to_owned()));
            }
        }
        Ok(slo)
    }
}

/// Reads a time with its unit, `ms` or `s`.
fn time(text: &str) -> Option<Duration> {
    let (number, seconds) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s')?, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    let time = Duration::try_from_secs_f64(number * seconds).ok()?;
    (!time.is_zero()).then_some(time)
}

impl Slo {
    /// Returns whether `answer` came within all limits. One whose first token is not known did not come within a limit of
    /// it; one of a single token has no time between tokens, and keeps any limit of it.
    pub(super) fn is_met(&self, answer: &Answer) -> bool {
        let within = |limit: Option<Duration>, taken: Option<Duration>| {
            limit.is_none_or(|limit| taken.is_some_and(|taken| taken <= limit))
        };
        let tpot = answer.time_per_output_token().or_else(|| {
            let is_single = answer.output_tokens() <= 1;
            is_single.then_some(Duration::ZERO)
        });
        within(self.ttft, answer.first)
            && within(self.tpot, tpot)
            && within(self.e2e, Some(answer.end))
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [("ttft", self.ttft), ("tpot", self.tpot), ("e2e", self.e2e)];
        let limits = all.into_iter().filter_map(|(name, limit)| {
            let limit = limit?;
            Some(format!("{name} at most {limit:?}"))
        });
        out.write_str(&limits.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Slo, BadSlo> {
        text.parse()
    }

    #[test]
    fn limits_are_read_with_their_units() {
        let slo = parsed("ttft:200ms, tpot:2.5ms,e2e:2s").expect("limits");
        let ms = |ms| Some(Duration::from_micros(ms));
        assert_eq!(slo.ttft, ms(200_000));
        assert_eq!(slo.tpot, ms(2_500));
        assert_eq!(slo.e2e, ms(2_000_000));
        assert_eq!(
            slo.to_string(),
            "ttft at most 200ms, tpot at most 2.5ms, e2e at most 2s"
        );
    }

    #[test]
    fn what_is_no_limit_is_named() {
        for (text, part) in [
            ("", "'' is no limit"),
            ("ttft", "'ttft' is no limit"),
            ("itl:2ms", "'itl:2ms' is no limit"),
            ("ttft:200", "'200' is no time"),
            ("ttft:0ms", "'0ms' is no time"),
            ("tpot:-1s", "'-1s' is no time"),
            ("e2e:infs", "'infs' is no time"),
            ("e2e:1s,e2e:2s", "'e2e' is limited twice"),
        ] {
            let error = parsed(text).expect_err(text).to_string();
            assert!(error.starts_with(part), "{error}");
        }
    }

    #[test]
    fn a_request_counts_if_it_keeps_all_limits() {
        let ms = Duration::from_millis;
        // Three tokens, 10 ms a token after the first.
        let answer = Answer::at(&[ms(100), ms(110), ms(120)], ms(130));
        for (text, is_met) in [
            ("ttft:100ms,tpot:10ms,e2e:130ms", true),
            ("ttft:99ms", false),
            ("tpot:9ms", false),
            ("e2e:129ms", false),
        ] {
            assert_eq!(
                parsed(text).expect("limits").is_met(&answer),
                is_met,
                "{text}"
            );
        }
        let single = Answer::at(&[ms(100)], ms(100));
        assert!(parsed("tpot:1ms").expect("limits").is_met(&single));
        let empty = Answer::at(&[], ms(1));
        assert!(!parsed("ttft:1s").expect("limits").is_met(&empty));
    }
}
