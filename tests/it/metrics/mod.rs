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

pub(crate) use openmetrics::Scrape;
pub(crate) use table::in_openmetrics;
use world::{Cluster, Watched, process};

/// Labels of requests for the model of these tests.
const MODEL: (&str, &str) = ("model", "default");
const GEN_AI: [(&str, &str); 3] = [
    ("gen_ai_operation_name", "chat"),
    ("gen_ai_provider_name", "outrider"),
    ("gen_ai_request_model", "default"),
];

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
