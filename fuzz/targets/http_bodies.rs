//! Fuzzes the bodies of HTTP requests to a coordinator with a real drafter and a real verifier: each is answered or
//! refused, in time and within a bound of memory.

#![no_main]

use std::io::Read;
use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use outrider_fuzz::input::HttpBody;
use outrider_fuzz::memory::grown_by;
use outrider_fuzz::services::{CoordinatorTask, DRAFTER, VERIFIER};
use ureq::Agent;
use ureq::http::StatusCode;

/// Far longer than a response takes, and far more memory than an input of a few KiB may take.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_BYTES: u64 = 64 << 20;

static COORDINATOR: LazyLock<CoordinatorTask> =
    LazyLock::new(|| CoordinatorTask::start_with_http(&DRAFTER, &VERIFIER));

static AGENT: LazyLock<Agent> = LazyLock::new(|| {
    let config = Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE));
    config.build().new_agent()
});

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some(HttpBody { route, body }) = HttpBody::read(bytes) else {
        return Corpus::Reject;
    };
    let (status, grown) = grown_by(|| post(route, body));
    let is_own = status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE;
    assert!(!is_own, "the service's own fault: {status}");
    assert!(grown <= MOST_BYTES, "{grown} bytes for {}", bytes.len());
    Corpus::Keep
});

/// Posts `body` and reads the answer to its end.
fn post(route: &str, body: &[u8]) -> StatusCode {
    let url = COORDINATOR.http_url.as_deref().expect("an address");
    let request = AGENT.post(format!("{url}{route}"));
    let request = request.content_type("application/json");
    let mut response = request.send(body).expect("an answer in time");
    let mut reader = response.body_mut().as_reader();
    let mut left = [0; 4096];
    while reader.read(&mut left).expect("a whole answer in time") > 0 {}
    response.status()
}
