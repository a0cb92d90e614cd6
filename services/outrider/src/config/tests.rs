//! Values that a setting does not take are refused in words, whichever setting it is.

use ops::config::{load, survey};
use serde_json::{Value, json};

use super::Config;

/// Words of Rust and serde, which mean nothing to whoever writes a configuration.
const JARGON: [&str; 23] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "isize",
    "f64",
    "untagged",
    "enum",
    "struct",
    "variant",
    "NonZero",
    "nonzero",
    "tuple",
    "newtype",
    "unsigned int",
    "signed int",
    "sequence",
];

/// Returns the keys of all settings, `section.key`.
fn keys() -> Vec<String> {
    let none = std::iter::empty;
    let loaded = load::<Config>(None, none(), &json!({})).expect("the defaults");
    let keys = loaded.provenance.iter().map(|setting| setting.key.clone());
    keys.collect()
}

/// Returns a configuration in which `key` is `value`.
fn with(key: &str, value: &Value) -> Value {
    let names = key.rsplit('.');
    names.fold(value.clone(), |inner, name| json!({ name: inner }))
}

#[test]
fn what_a_setting_takes_is_said_in_words() {
    let values = [
        json!("nonsense"),
        json!(-1),
        json!(1.5),
        json!(1e30),
        json!(u64::MAX),
        json!(true),
        json!([]),
        json!([[1]]),
        json!({}),
        json!({ "nonsense": 1 }),
    ];
    let mut refused = 0;
    for key in keys() {
        for value in &values {
            let flags = with(&key, value);
            let none = std::iter::empty;
            let (_, errors) = survey::<Config>(None, none(), &flags);
            for error in errors {
                refused += 1;
                let said = error.to_string();
                let words: Vec<_> = said
                    .split(|c: char| !c.is_alphanumeric() && c != ' ')
                    .collect();
                let is_word = |word: &str| {
                    words.iter().any(|part| {
                        let part = format!(" {part} ");
                        part.contains(&format!(" {word} "))
                    })
                };
                let found = JARGON.iter().find(|word| is_word(word));
                assert!(found.is_none(), "{key} = {value}: {said}");
                assert!(
                    said.contains("expected")
                        || said.contains("; write ")
                        || said.contains("valid keys")
                        || said.contains("out of the range"),
                    "{key} = {value}: {said}"
                );
            }
        }
    }
    assert!(refused > 500, "only {refused} values were refused");
}
