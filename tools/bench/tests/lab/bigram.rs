//! Making a bigram table.

use std::collections::BTreeMap;
use std::path::Path;

use model::bigram::BigramFile;

use super::{each_refused, program, succeeds};

const DOCUMENTS: [&str; 3] = [
    "the cat sat on the mat and the cat slept",
    "a cat and a dog and the dog slept on the mat",
    "the mat",
];

/// Most frequent successors, counted by definition: of pairs within a document and its end, the lowest
/// id among equals.
fn successors() -> BTreeMap<u32, u32> {
    let tokenizer = model::embedded::target().expect("embedded").tokenizer();
    let tokenizer = tokenizer.expect("a tokenizer");
    let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for text in DOCUMENTS {
        let encoded = tokenizer.encode_fast(text, true).expect("tokens");
        let ids = [encoded.get_ids(), &[2]].concat();
        for pair in ids.windows(2) {
            *counts.entry((pair[0], pair[1])).or_default() += 1;
        }
    }
    let mut best: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for ((token, next), count) in counts {
        let entry = best.entry(token).or_insert((0, 0));
        if count > entry.0 {
            *entry = (count, next);
        }
    }
    best.into_iter()
        .map(|(token, (_, next))| (token, next))
        .collect()
}

fn built(folder: &Path, text: &str, name: &str) -> String {
    let (source, out) = (folder.join(name), folder.join("table.safetensors"));
    std::fs::write(&source, text).expect("written");
    let paths = [&source, &out].map(|path| path.to_str().expect("UTF-8").to_owned());
    let [source, out] = paths;
    succeeds(&mut program(&[
        "bigram", "build", "--text", &source, "--out", &out,
    ]));
    out
}

fn as_rows() -> String {
    let row = |text: &&str| serde_json::json!({ "text": text, "kind": "test" }).to_string() + "\n";
    DOCUMENTS.iter().map(row).collect()
}

#[test]
fn a_bigram_table_holds_what_follows_most_often() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = built(folder.path(), &as_rows(), "corpus.jsonl");
    let file = BigramFile::open(&table).expect("a table");
    let expected = successors();
    assert!(expected.len() > 8);
    for (&token, &next) in &expected {
        assert_eq!(file.table.next(token), Some(next), "after {token}");
    }
    let target = model::embedded::target().expect("embedded");
    let fingerprint = model::tokenizer::vocabulary_fingerprint(&target.tokenizer().expect("one"));
    assert_eq!(file.vocab_fingerprint, fingerprint);
    assert_eq!((file.vocab_size(), file.eos_token_ids), (4096, vec![2]));
    // The same text gives the same file.
    let bytes = std::fs::read(&table).expect("a file");
    built(folder.path(), &as_rows(), "corpus.jsonl");
    assert!(std::fs::read(&table).expect("a file") == bytes);
    // And so do all that have the tokenizer, however they are named.
    let folder_of = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default/");
    let (corpus, again) = (
        folder.path().join("corpus.jsonl"),
        folder.path().join("again"),
    );
    for source in ["draft", "tokenizer"] {
        let mut build = program(&["bigram", "build", "--end-token", "2", "--tokenizer"]);
        build
            .arg(format!("{folder_of}{source}"))
            .arg("--text")
            .arg(&corpus);
        succeeds(build.arg("--out").arg(&again));
        assert!(std::fs::read(&again).expect("a file") == bytes, "{source}");
    }
    // Plain text is one document.
    let plain = built(folder.path(), DOCUMENTS[0], "plain.txt");
    assert!(std::fs::read(&plain).expect("a file") != bytes);
}

#[test]
fn a_table_that_cannot_be_made_is_refused_by_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("good.txt", DOCUMENTS[0]),
        ("bad.jsonl", "{\"words\": 1}\n"),
        ("empty.txt", ""),
    ] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let out = folder.path().join("out");
    for line in [
        "--text no/such --out DIR/out | --text | no/such",
        "--text DIR/bad.jsonl --out DIR/out | bad.jsonl, line 1 | 'text'",
        "--text DIR/empty.txt --out DIR/out | --text | no text",
        "--text DIR/good.txt --out DIR/out --tokenizer DIR | --tokenizer | tokenizer.json",
        "--text DIR/good.txt --out DIR/out --end-token 4096 | --end-token | 4096 tokens",
        "--text DIR/good.txt --out no/such/folder/out | --out | no/such/folder",
    ] {
        let line = line.replace("DIR", folder.path().to_str().expect("UTF-8"));
        each_refused(&["bigram", "build"], &[&line]);
    }
    assert!(!out.exists());
}
