//! Any request of a client, of a coordinator with a real drafter and a real verifier.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use outrider_fuzz::services::{CoordinatorTask, DRAFTER, VERIFIER, channel, read_all};
use prost::Message;
use wire::v1::GenerateRequest;
use wire::v1::coordinator_client::CoordinatorClient;

static COORDINATOR: LazyLock<CoordinatorTask> =
    LazyLock::new(|| CoordinatorTask::start(&DRAFTER, &VERIFIER));

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(request) = GenerateRequest::decode(bytes) else {
        return Corpus::Reject;
    };
    let mut client = CoordinatorClient::new(channel(&COORDINATOR.url));
    read_all(client.generate(request));
    Corpus::Keep
});
