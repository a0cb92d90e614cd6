//! A verifier asked anything at all: whatever the messages are, it answers or says what is wrong with them.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use outrider_fuzz::input::SessionStream;
use outrider_fuzz::services::{VERIFIER, channel, converse};
use prost::Message;
use wire::v1::verifier_client::VerifierClient;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(stream) = SessionStream::decode(bytes) else {
        return Corpus::Reject;
    };
    let mut client = VerifierClient::new(channel(&VERIFIER));
    converse(stream.with_digests(), |requests| client.verify(requests));
    Corpus::Keep
});
