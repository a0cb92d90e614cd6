//! What the processes tell of themselves, against what their answers say.

mod exemplars;
mod faults;
mod openmetrics;
mod peers;
mod requests;
mod table;

pub(crate) use openmetrics::Scrape;
pub(crate) use table::in_openmetrics;

/// Labels of requests for the model of these tests.
const MODEL: (&str, &str) = ("model", "default");
const GEN_AI: [(&str, &str); 3] = [
    ("gen_ai_operation_name", "chat"),
    ("gen_ai_provider_name", "outrider"),
    ("gen_ai_request_model", "default"),
];
