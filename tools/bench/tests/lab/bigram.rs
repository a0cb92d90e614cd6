//! Making a bigram table.

use std::collections::BTreeMap;
use std::path::Path;

use model::bigram::BigramFile;

use super::{refused, run};

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
    let output = run(&["bigram", "build", "--text", &paths[0], "--out", &paths[1]]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    paths[1].clone()
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
        assert_eq!(file.table.next(token), next, "after {token}");
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
    for source in ["draft", "tokenizer"] {
        let source = format!("{folder_of}{source}");
        let again = folder.path().join("again");
        let again = again.to_str().expect("UTF-8");
        let corpus = folder.path().join("corpus.jsonl");
        let corpus = corpus.to_str().expect("UTF-8");
        let args = ["bigram", "build", "--text", corpus, "--out", again];
        let more = ["--tokenizer", &source, "--end-token", "2"];
        let output = run(&[&args[..], &more].concat());
        assert!(output.status.success(), "{source}");
        assert!(std::fs::read(again).expect("a file") == bytes, "{source}");
    }
    // Plain text is one document.
    let plain = built(folder.path(), DOCUMENTS[0], "plain.txt");
    assert!(std::fs::read(&plain).expect("a file") != bytes);
}

#[test]
fn a_table_that_cannot_be_made_is_refused_by_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let good = file("good.txt", DOCUMENTS[0]);
    let bad = file("bad.jsonl", "{\"words\": 1}\n");
    let empty = file("empty.txt", "");
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let nowhere = folder.path().to_str().expect("UTF-8");
    for (args, parts) in [
        (
            vec!["--text", "no/such", "--out", out],
            ["--text", "no/such"],
        ),
        (
            vec!["--text", &bad, "--out", out],
            ["bad.jsonl, line 1", "'text'"],
        ),
        (vec!["--text", &empty, "--out", out], ["--text", "no text"]),
        (
            vec!["--text", &good, "--out", out, "--tokenizer", nowhere],
            ["--tokenizer", "tokenizer.json"],
        ),
        (
            vec!["--text", &good, "--out", out, "--end-token", "4096"],
            ["--end-token", "4096 tokens"],
        ),
        (
            vec!["--text", &good, "--out", "no/such/folder/out"],
            ["--out", "no/such/folder"],
        ),
    ] {
        let said = refused(&[&["bigram", "build"], &args[..]].concat());
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{args:?}: {said}"
        );
    }
    assert!(!Path::new(out).exists());
}
