//! Random requests under random faults. `OUTRIDER_SWEEP=full` tries many more, and
//! `OUTRIDER_SWEEP=<seed>` that one again.

use std::collections::HashMap;
use std::ops::Range;

use speculation::session::{FinishReason, Peer};
use speculation::verification::Verification;

use crate::case::Case;
use crate::faults::Faults;
use crate::record::Record;
use crate::simulation::simulate;

/// The seeds that the environment asks for.
pub(crate) fn seeds() -> Range<u64> {
    match std::env::var("OUTRIDER_SWEEP").as_deref() {
        Err(_) => 0..2_000,
        Ok("full") => 0..100_000,
        Ok(seed) => {
            let seed = seed.parse();
            let seed = seed.expect("OUTRIDER_SWEEP is neither 'full' nor a seed");
            seed..seed + 1
        }
    }
}

/// What a sweep met with: one in which nothing happens proves nothing.
pub(crate) struct Met {
    times: HashMap<&'static str, u64>,
    is_sweep: bool,
}

impl Met {
    /// A sweep of `seeds` that must meet with all of these.
    pub(crate) fn of<const N: usize>(must: [&'static str; N], seeds: &Range<u64>) -> Self {
        Self {
            times: HashMap::from(must.map(|what| (what, 0))),
            is_sweep: seeds.end - seeds.start > 1,
        }
    }

    pub(crate) fn meet(&mut self, what: &'static str, times: u32) {
        *self.times.entry(what).or_insert(0) += u64::from(times);
    }

    pub(crate) fn check(&self) {
        let times = &self.times;
        let met_all = times.values().all(|&times| times >= 50);
        assert!(!self.is_sweep || met_all, "{times:?}");
    }
}

/// How a request ended.
pub(crate) fn end_of(record: &Record) -> &'static str {
    match record.end().1 {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::DeadlineExceeded => "deadline",
        FinishReason::Cancelled => "cancelled",
        FinishReason::Failed { peer, .. } => {
            assert_eq!(*peer, Peer::Verifier);
            "failed"
        }
    }
}

/// What it must meet with.
const TO_MEET: [&str; 9] = [
    "stop",
    "length",
    "deadline",
    "cancelled",
    "failed",
    "retries",
    "fallbacks",
    "needs",
    "streamed",
];

#[test]
fn random_requests_under_random_faults_are_lossless_and_end() {
    let seeds = seeds();
    let mut met = Met::of(TO_MEET, &seeds);
    for seed in seeds {
        let case = Case::random(seed);
        let record = simulate(&case, &Faults::random(seed));
        if case.method.verification == Verification::COUPLED {
            record.assert_lossless();
        } else {
            record.assert_orderly();
        }
        met.meet(end_of(&record), 1);
        met.meet("retries", record.statistics.retries);
        met.meet("fallbacks", record.statistics.fallbacks.len() as u32);
        met.meet("needs", record.needs);
        met.meet("streamed", u32::from(case.streams));
    }
    met.check();
}
