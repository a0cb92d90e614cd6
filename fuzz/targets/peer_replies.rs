//! A coordinator whose drafter and verifier answer anything at all: its client is answered, or told what failed.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use outrider_fuzz::fake::FAKE_PEERS;
use outrider_fuzz::input::Exchange;
use outrider_fuzz::services::{CoordinatorTask, channel, read_all};
use prost::Message;
use wire::v1::coordinator_client::CoordinatorClient;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(mut exchange) = Exchange::decode(bytes) else {
        return Corpus::Reject;
    };
    let Some(request) = exchange.request.take() else {
        return Corpus::Reject;
    };
    let url = FAKE_PEERS.url();
    FAKE_PEERS.play(exchange);
    // A new one each time: it would leave alone peers that fail so often.
    let coordinator = CoordinatorTask::start(url, url);
    let mut client = CoordinatorClient::new(channel(&coordinator.url));
    read_all(client.generate(request));
    Corpus::Keep
});
