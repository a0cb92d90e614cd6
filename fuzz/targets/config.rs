//! Any bytes as a configuration file, TOML or JSON by the first byte, and as a variable of the environment.

#![no_main]

use std::ffi::OsString;
use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use outrider::config::Config;
use serde_json::json;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fuzz_target!(|text: &str| -> Corpus {
    let name = if text.starts_with('{') {
        "outrider.json"
    } else {
        "outrider.toml"
    };
    let path = FOLDER.path().join(name);
    fs::write(&path, text).expect("a file");
    let nothing = std::iter::empty::<(OsString, OsString)>();
    let _ = ops::config::load::<Config>(Some(&path), nothing, &json!({}));

    // `SECTION__KEY=value` in its first line.
    let Some((name, value)) = text.lines().next().and_then(|line| line.split_once('=')) else {
        return Corpus::Keep;
    };
    let variable = (
        OsString::from(format!("OUTRIDER__{name}")),
        OsString::from(value),
    );
    let _ = ops::config::load::<Config>(None, [variable], &json!({}));
    Corpus::Keep
});
