//! Any bytes as a recording of distributions.

#![no_main]

// The laboratory is a program; its reader needs nothing else of it.
#[allow(dead_code, unused_imports)]
#[path = "../../tools/bench/src"]
mod bench {
    pub(crate) mod recording;
}

use bench::recording;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = recording::RecordingReader::new(bytes) else {
        return;
    };
    while let Ok(Some(_)) = reader.next_block() {}
});
