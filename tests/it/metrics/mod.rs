//! What the processes tell of themselves at their admin ports, against what their answers say.

mod exemplars;
mod faults;
mod openmetrics;
mod peers;
mod readiness;
mod requests;
mod sessions;
mod table;
mod world;

use wire::v1::SpeculationStatistics;

use crate::client::Answer;
pub(crate) use openmetrics::Scrape;
use world::{Cluster, Watched, process};

fn statistics(answer: &Answer) -> &SpeculationStatistics {
    answer.finished.speculation.as_ref().expect("statistics")
}

/// Draft positions that are counted one by one.
const POSITIONS: u32 = 20;

/// How many rounds came to each position, given how far each came.
fn by_position<'a>(reached: impl Iterator<Item = &'a u32>) -> Vec<(String, u32)> {
    let reached: Vec<u32> = reached.copied().collect();
    let single = (1..=POSITIONS).map(|position| {
        let count = reached.iter().filter(|&&len| len >= position).count();
        (position.to_string(), count as u32)
    });
    let beyond = reached
        .iter()
        .map(|len| len.saturating_sub(POSITIONS))
        .sum();
    single.chain([("21+".to_owned(), beyond)]).collect()
}
