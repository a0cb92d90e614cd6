//! Configuring a drafter.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use model::bigram::BigramFile;
use speculation::max_gram::Bigram;

use super::{ANY, json, outrider, refused, succeeds, words};

#[test]
fn a_table_drives_max_gram() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = model::embedded::target().expect("embedded");
    let tokenizer = target.tokenizer().expect("a tokenizer");
    // Each token's successor is the next one: a table like no other.
    let next = (0..4096).map(|token| (token + 1) % 4096).collect();
    let file = BigramFile {
        table: Bigram::new(next).expect("a table"),
        vocab_fingerprint: model::tokenizer::vocabulary_fingerprint(&tokenizer),
        eos_token_ids: vec![2],
    };
    let table = folder.path().join("table.safetensors");
    file.save(&table).expect("written");
    let args = words("--prompt 'Once upon a time' --max-tokens 24 --seed 3");
    let alone = json(&[&args[..], &["--method", "target-only"]].concat());
    let mut drafting = outrider(&["generate", "--json", "--drafting", "max-gram"]);
    drafting
        .args(args)
        .env("OUTRIDER__DRAFTER__BIGRAM", &table)
        .env("OUTRIDER__DRAFTER__MODEL__PATH", "none");
    let (drafted, _) = succeeds(&mut drafting);
    let drafted: serde_json::Value = serde_json::from_str(&drafted).expect("JSON");
    assert_eq!(drafted["token_ids"], alone["token_ids"]);
}

/// Which matrices, models and tables cannot be is tested in `tests/it/drafter/configuration.rs`.
#[test]
fn a_drafter_that_cannot_be_is_refused_by_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.toml");
    let path = file.to_str().expect("UTF-8");
    for line in [
        "[drafter.cascade];k = [[2, 2, 10], [0, 1, 1], [0, 0, 1]] | drafter.cascade.k | expected 2",
        "[drafter.cascade];lenient = 2 | drafter.cascade.lenient | lenience",
        "[drafter.cascade];models = [{ path = 'no/such/folder' }] | drafter.cascade.models[0] | org/name[@revision]",
        "[drafter.cascade];max_gram = 'sometimes' | drafter.cascade.max_gram | true, false or auto",
        "[drafter];bigram = 'none';cascade = { max_gram = true } | drafter.cascade.max_gram | no bigram table",
        "[drafter];heads = ['no/such'] | drafter.heads | no/such",
        "[drafter];bigram = 'none';model = { path = 'none' } | drafter.bigram | nobody to draft",
    ] {
        let mut cells = line.split(" | ");
        let text = cells.next().unwrap_or_default().replace(';', "\n");
        std::fs::write(&file, text).expect("written");
        let said = refused(&["serve", "drafter", "--config", path, "--listen", ANY]);
        assert!(cells.all(|part| said.contains(part)), "{line}: {said}");
    }
}

#[test]
fn a_cascade_whose_order_is_wrong_is_warned_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.toml");
    let path = file.to_str().expect("UTF-8");
    let told = |models: &str| {
        std::fs::write(&file, format!("[drafter.cascade]\nmodels = [{models}]")).expect("written");
        let mut child = outrider(&["serve", "drafter", "--config", path, "--listen", ANY])
            // Another test may have the port, of which this process would warn.
            .env("OUTRIDER__ADMIN__LISTEN", "off")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let lines = lines.map_while(Result::ok);
        let told: Vec<String> = lines
            .take_while(|line| !line.contains("serving address="))
            .collect();
        child.kill().expect("killed");
        child.wait().expect("ended");
        told.join("\n")
    };
    let wrong = told("{ path = \"embedded:small\" }, { path = \"embedded:target\" }");
    for part in words("WARN drafter.cascade.models[1] default-target default-small") {
        assert!(wrong.contains(part), "{wrong}");
    }
    assert!(!wrong.contains("models[0]"), "{wrong}");
    let right = told("{ path = \"embedded:small\" }");
    assert!(!right.contains("WARN"), "{right}");
}
