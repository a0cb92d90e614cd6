//! What came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use speculation::certificate::PartialRow;

/// Counts and times.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: usize,
    /// Rows whose entries differ from those of the whole row, and by how much at most.
    other_rows: usize,
    largest_difference: f64,
    /// Requests after the first of a round.
    repeated: usize,
    rounds: Vec<Duration>,
    /// Sequences of all rounds.
    sequences: usize,
    proofs: Vec<Duration>,
    ways: BTreeMap<&'static str, Way>,
}

/// One way of sampling.
#[derive(Debug, Default)]
struct Way {
    choices: usize,
    proved_at_first: usize,
    proved: usize,
    wrong: usize,
}

impl Report {
    pub(crate) fn request(&mut self, took: Duration, is_first: bool, sequences: usize) {
        if is_first {
            self.rounds.push(took);
            self.sequences += sequences;
        } else {
            self.repeated += 1;
        }
    }

    /// A row, beside the whole one that the engine gave for it in another answer.
    pub(crate) fn row(&mut self, row: &PartialRow, whole: &PartialRow) {
        self.rows += 1;
        let by_token: BTreeMap<u32, f64> = whole
            .known()
            .iter()
            .map(|likely| (likely.token, likely.logprob))
            .collect();
        let difference = row
            .known()
            .iter()
            .map(|likely| (likely.logprob - by_token[&likely.token]).abs())
            .fold(0.0, f64::max);
        self.other_rows += usize::from(difference > 0.0);
        self.largest_difference = self.largest_difference.max(difference);
    }

    pub(crate) fn proof(&mut self, way: &'static str, took: Duration, is_first: bool) {
        if is_first {
            self.ways.entry(way).or_default().choices += 1;
            self.proofs.push(took);
        }
    }

    pub(crate) fn proved(&mut self, way: &'static str, is_right: bool, is_first: bool) {
        let way = self.ways.entry(way).or_default();
        way.proved += 1;
        way.proved_at_first += usize::from(is_first);
        way.wrong += usize::from(!is_right);
    }

    pub(crate) fn summary(&self) -> Value {
        let ways: BTreeMap<&str, Value> = self
            .ways
            .iter()
            .map(|(name, way)| {
                let counts = json!({
                    "choices": way.choices,
                    "proved_at_first": way.proved_at_first,
                    "proved": way.proved,
                    "wrong": way.wrong,
                });
                (*name, counts)
            })
            .collect();
        json!({
            "rows": self.rows,
            "rows_that_differ": self.other_rows,
            "largest_difference": self.largest_difference,
            "rounds": self.rounds.len(),
            "sequences": self.sequences,
            "requests": self.rounds.len() + self.repeated,
            "round_ms": median_ms(&self.rounds),
            "proof_ms": median_ms(&self.proofs),
            "ways": ways,
        })
    }
}

fn median_ms(times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let median = times.get(times.len() / 2);
    median.map_or(0.0, |time| time.as_secs_f64() * 1e3)
}
