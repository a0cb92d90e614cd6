//! Writes the inputs that fuzzing begins with, those made by programs: `cargo run --example seeds`, after a change of
//! a format. What no program makes, among it tokenizers, templates and configurations, is not touched.

use std::fs;
use std::path::Path;

use prost::Message;
use wire::v1::{LogitBias, SamplingParams, TokenTree};

mod exchanges;
mod files;
mod http;
mod requests;
mod streams;

/// Tokens of the tiny tokenizer.
const PROMPT: [u32; 4] = [79, 110, 99, 101];

fn main() {
    streams::write_all();
    streams::write_appends();
    for (name, request) in requests::all() {
        write("client_request", name, &request);
        write("peer_replies", name, &exchanges::capable(request));
    }
    write("peer_replies", "described", &exchanges::described());
    files::write_all();
    http::write_all();
}

fn write(target: &str, name: &str, message: &impl Message) {
    write_bytes(target, name, &message.encode_to_vec());
}

fn write_bytes(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(format!("seed-{name}")), bytes).expect("a file");
}

fn sampling() -> SamplingParams {
    SamplingParams {
        temperature: Some(0.75),
        top_k: 50,
        top_p: Some(0.9),
        repetition_penalty: Some(1.1),
        logit_bias: vec![LogitBias {
            token_id: 7,
            bias: -1.0,
        }],
        ..Default::default()
    }
}

fn tree(tokens: &[u32], parents: &[i32]) -> TokenTree {
    TokenTree {
        token_ids: tokens.to_vec(),
        parents: parents.to_vec(),
    }
}
