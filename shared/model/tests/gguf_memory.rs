//! What reading a GGUF file takes of memory, whatever the file says.
//!
//! A test binary of its own, because it replaces the global allocator by one that counts.

use std::io::Write;

use model::Checkpoint;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes of what a file is filled with.
const FILLING: usize = 8 << 20;
/// Types of values.
const BYTE: u32 = 0;
const WHOLE: u32 = 4;
const REAL: u32 = 6;
const FLAG: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text].concat()
}

/// An array of `kind`: its items are `item`, again and again.
fn array(kind: u32, item: &[u8]) -> Vec<u8> {
    let count = FILLING / item.len();
    let head = [&kind.to_le_bytes()[..], &(count as u64).to_le_bytes()].concat();
    [head, item.repeat(count)].concat()
}

/// A file of these values, of which the first `said` are counted in its header, and no tensors.
fn file(said: usize, values: &[(String, u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend((said as u64).to_le_bytes());
    for (key, kind, value) in values {
        bytes.extend(string(key.as_bytes()));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(value);
    }
    bytes
}

/// The values that a model's config is made of.
fn config(architecture: &str) -> Vec<(String, u32, Vec<u8>)> {
    let key = |name: &str| format!("{architecture}.{name}");
    let mut values = vec![(
        "general.architecture".to_owned(),
        STRING,
        string(architecture.as_bytes()),
    )];
    for name in [
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.key_length",
        "vocab_size",
    ] {
        values.push((key(name), WHOLE, 8_u32.to_le_bytes().to_vec()));
    }
    let epsilon = 1e-5_f32.to_le_bytes().to_vec();
    values.push((key("attention.layer_norm_rms_epsilon"), REAL, epsilon));
    values
}

/// The most memory that was in use at a time while it was opened, or refused.
fn memory_to_open(bytes: &[u8]) -> usize {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let opened = Checkpoint::open(file.path());
    let most = ALLOCATOR.peak_usage() - before;
    drop(opened);
    most
}

#[test]
fn metadata_takes_memory_in_proportion_to_its_bytes() {
    let unread = |kind, item: &[u8]| {
        let key = "nobody.reads.it".to_owned();
        vec![(key, ARRAY, array(kind, item))]
    };
    let with = |architecture: &str, key: &str, kind, item: &[u8]| {
        let mut values = config(architecture);
        values.push((key.to_owned(), ARRAY, array(kind, item)));
        values
    };
    let nothing = string(b"");
    let many = (0..FILLING / 21).map(|i| (format!("{i:08}"), FLAG, vec![1]));
    for (what, values) in [
        ("bytes", unread(BYTE, &[7])),
        ("flags", unread(FLAG, &[1])),
        ("empty strings", unread(STRING, &nothing)),
        ("strings that are none", unread(STRING, &string(&[0xff; 9]))),
        (
            "empty arrays",
            unread(ARRAY, &[&[0; 4][..], &nothing].concat()),
        ),
        ("names", many.collect()),
        ("ends", with("llama", "outrider.eos_token_ids", BYTE, &[7])),
        (
            "tokens",
            with("llama", "tokenizer.ggml.tokens", STRING, &string(b"a")),
        ),
        (
            "kinds",
            with("llama", "tokenizer.ggml.token_type", BYTE, &[3]),
        ),
        (
            "windows",
            with(
                "gemma3",
                "gemma3.attention.sliding_window_pattern",
                FLAG,
                &[1],
            ),
        ),
    ] {
        let bytes = file(values.len(), &values);
        let most = memory_to_open(&bytes);
        let allowed = 6 * bytes.len();
        println!("{what}: {most} bytes for {}", bytes.len());
        assert!(
            most <= allowed,
            "{what}: {most} bytes of memory for {}",
            bytes.len()
        );
    }
}
