use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    verifier: Verifier,
    log: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Verifier {
    listen: String,
    max_batch: u16,
    temperature: f32,
    peers: Vec<String>,
    auth_token: Option<String>,
    threads: Option<NonZeroU32>,
    mode: Mode,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Off,
    Server,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            verifier: Verifier::default(),
            log: "info".to_owned(),
        }
    }
}

impl Default for Verifier {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:7001".to_owned(),
            max_batch: 8,
            temperature: 0.1,
            peers: vec!["a".to_owned(), "b".to_owned()],
            auth_token: None,
            threads: None,
            mode: Mode::Off,
        }
    }
}

/// Returns a file with that name and text, in a directory that lives as long as the returned guard.
fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

fn environment(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let pairs = variables.iter();
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn from_environment(variables: &[(&str, &str)]) -> Result<LoadedConfig<Config>, ConfigError> {
    load(None, environment(variables), &json!({}))
}

fn from_file(name: &str, text: &str) -> Result<LoadedConfig<Config>, ConfigError> {
    let (_directory, path) = file(name, text);
    load(Some(&path), [], &json!({}))
}

fn refusal(loaded: Result<LoadedConfig<Config>, ConfigError>) -> String {
    loaded.unwrap_err().to_string()
}

/// Checks that a refusal names all these parts of `reported`: `part | part`.
#[track_caller]
fn assert_names(message: &str, reported: &str) {
    for part in reported.split(" | ") {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

/// Each variable is refused by its name: `NAME=value | part | part`.
#[track_caller]
fn each_variable_is_refused(table: &[&str]) {
    for line in table {
        let (variable, reported) = line.split_once(" | ").unwrap();
        let (name, value) = variable.split_once('=').unwrap();
        let message = refusal(from_environment(&[(name, value)]));
        assert_names(&message, name);
        assert_names(&message, reported);
    }
}

#[test]
fn each_layer_overrides_the_one_before_it() {
    let text = "log = 'file'\n[verifier]\nlisten = 'file'\nmax_batch = 1\npeers = ['c']\n";
    let (_directory, path) = file("outrider.toml", text);
    let variables = environment(&[
        ("OUTRIDER__VERIFIER__LISTEN", "environment"),
        ("OUTRIDER__LOG", "environment"),
    ]);
    let flags = json!({"log": "flag", "verifier": {"threads": null, "temperature": null}});
    let loaded: LoadedConfig<Config> = load(Some(&path), variables, &flags).unwrap();

    // Arrays are replaced whole, and a flag that is null is not given.
    let expected = Config {
        log: "flag".to_owned(),
        verifier: Verifier {
            listen: "environment".to_owned(),
            max_batch: 1,
            peers: vec!["c".to_owned()],
            ..Verifier::default()
        },
    };
    assert_eq!(loaded.value, expected);

    let source = format!("file {}", path.display());
    let expected = [
        ("log", "\"flag\"", "flag"),
        ("verifier.auth_token", "unset", "default"),
        (
            "verifier.listen",
            "\"environment\"",
            "environment OUTRIDER__VERIFIER__LISTEN",
        ),
        ("verifier.max_batch", "1", &source),
        ("verifier.mode", "\"off\"", "default"),
        ("verifier.peers", "[\"c\"]", &source),
        ("verifier.temperature", "0.1", "default"),
        ("verifier.threads", "unset", "default"),
    ];
    let found: Vec<_> = loaded
        .provenance
        .iter()
        .map(|setting| (&*setting.key, &*setting.value, &*setting.source))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn passwords_in_urls_are_not_shown() {
    let loaded = from_environment(&[
        (
            "OUTRIDER__VERIFIER__LISTEN",
            "http://me:p@s,s@h:4317/a@b?c=d@e",
        ),
        (
            "OUTRIDER__VERIFIER__PEERS",
            "[\"http://a:b@c:1\", \"http://d:2/\", e@f]",
        ),
    ]);
    let loaded = loaded.unwrap();
    let shown = |key: &str| {
        let settings = loaded.provenance.iter();
        let mut of_key = settings.filter(|setting| setting.key == key);
        of_key.next().expect("a setting").value.clone()
    };
    assert_eq!(shown("verifier.listen"), "\"http://***@h:4317/a@b?c=d@e\"");
    let peers = r#"["http://***@c:1","http://d:2/","e@f"]"#;
    assert_eq!(shown("verifier.peers"), peers);
}

#[test]
fn without_settings_the_defaults_hold_whatever_kubernetes_injects() {
    let loaded = from_environment(&[
        ("OUTRIDER_VERIFIER_PORT", "tcp://10.0.0.1:7001"),
        ("OUTRIDER_VERIFIER_SERVICE_HOST", "10.0.0.1"),
        ("OUTRIDER", "x"),
    ]);
    assert_eq!(loaded.unwrap().value, Config::default());
}

#[test]
fn variables_are_read_as_the_type_they_set() {
    let loaded = from_environment(&[
        ("OUTRIDER__VERIFIER__LISTEN", "42"),
        ("OUTRIDER__VERIFIER__MAX_BATCH", "42"),
        ("OUTRIDER__VERIFIER__THREADS", "7"),
        ("OUTRIDER__VERIFIER__PEERS", "[c, d]"),
        ("OUTRIDER__VERIFIER__TEMPERATURE", "0.5"),
    ]);
    let verifier = loaded.unwrap().value.verifier;
    assert_eq!(verifier.listen, "42");
    assert_eq!(verifier.max_batch, 42);
    assert_eq!(verifier.threads, NonZeroU32::new(7));
    assert_eq!(verifier.peers, ["c", "d"]);
    assert_eq!(verifier.temperature, 0.5);
}

#[test]
fn unknown_keys_are_refused_with_their_origin_and_the_valid_ones() {
    let reported = "unknown key verifier.lisen | outrider.toml | `listen`";
    let message = refusal(from_file("outrider.toml", "[verifier]\nlisen = 'x'\n"));
    assert_names(&message, reported);
    let message = refusal(from_file("outrider.json", r#"{"verifier": {"lisen": 3}}"#));
    assert_names(&message, &reported.replace("toml", "json"));
    each_variable_is_refused(&[
        "OUTRIDER__VERFIER__LISTEN=x | unknown key verfier | `verifier`",
        "OUTRIDER__VERIFIER__NAME=x | unknown key verifier.name",
    ]);
    let message = refusal(load(None, [], &json!({"lgo": "x"})));
    assert_names(&message, "unknown key lgo from flag | `log`");
}

#[test]
fn wrong_types_and_ranges_name_key_value_and_origin() {
    let message = refusal(from_file(
        "outrider.toml",
        "[verifier]\nmax_batch = 'many'\n",
    ));
    let reported = "found the text \"many\", expected a whole number from 0 to 65535";
    assert_names(
        &message,
        &format!("verifier.max_batch | {reported} | outrider.toml"),
    );
    for value in ["3", "true", "[1]", "{ a = 1 }"] {
        let message = refusal(from_file(
            "outrider.toml",
            &format!("[verifier]\nmode = {value}\n"),
        ));
        assert_names(&message, "verifier.mode | expected `off` or `server`");
    }
    each_variable_is_refused(&[
        "OUTRIDER__VERIFIER__MAX_BATCH=70000 | verifier.max_batch | 70000",
        "OUTRIDER__VERIFIER__THREADS=0 | found 0, expected a whole number from 1 to 4294967295",
        "OUTRIDER__VERIFIER__THREADS=5000000000 | expected a whole number from 1 to 4294967295",
        "OUTRIDER__VERIFIER__PEERS=a,b | found the text \"a,b\", expected a list, [a, b]",
        "OUTRIDER__VERIFIER__MODE=on | found `on`, expected `off` or `server`",
        "OUTRIDER__VERIFIER=7001 | verifier | 7001, expected a table of settings, { key = value } | \
         environment OUTRIDER__VERIFIER",
        "OUTRIDER__=x | names no key",
        "OUTRIDER__VERIFIER__=x | names no key",
        "OUTRIDER____LISTEN=x | names no key",
    ]);
}

#[test]
fn secrets_are_shown_neither_in_the_listing_nor_in_errors() {
    let loaded = from_file("outrider.toml", "[verifier]\nauth_token = 'sesame'\n").unwrap();
    let listing: BTreeMap<_, _> = loaded
        .provenance
        .iter()
        .map(|setting| (&*setting.key, &*setting.value))
        .collect();
    assert_eq!(listing["verifier.auth_token"], "***");

    let message = refusal(from_environment(&[(
        "OUTRIDER__VERIFIER__AUTH_TOKEN",
        "90125",
    )]));
    assert_names(
        &message,
        "verifier.auth_token | OUTRIDER__VERIFIER__AUTH_TOKEN",
    );
    assert!(!message.contains("90125"), "{message}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let missing = PathBuf::from("no/such/outrider.toml");
    let message = refusal(load(Some(&missing), [], &json!({})));
    assert_names(&message, "no/such/outrider.toml | cannot read");
    for (name, text, reported) in [
        (
            "outrider.toml",
            "log = 'x'\n[verifier\n",
            "malformed | line 2",
        ),
        (
            "outrider.json",
            "{\n\"log\": \"x\"\n\"y\"}",
            "malformed | line 3",
        ),
        ("outrider.yaml", "log: x", ".toml or .json"),
        ("outrider", "log: x", ".toml or .json"),
    ] {
        let message = refusal(from_file(name, text));
        assert_names(&message, &format!("{name} | {reported}"));
    }
}

#[cfg(unix)]
#[test]
fn variables_that_are_not_text_are_refused() {
    use std::os::unix::ffi::OsStringExt;
    let variables = [("OUTRIDER__LOG".into(), OsString::from_vec(vec![0xff]))];
    let message = refusal(load(None, variables, &json!({})));
    assert_names(&message, "OUTRIDER__LOG | UTF-8");
}

#[test]
fn a_survey_tells_of_every_value_that_does_not_fit_and_takes_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let text = json!({
        "verifier": { "max_batch": "many", "peers": ["c", 3], "lissten": "x", "temperature": 0.5 },
        "log": "debug",
    });
    std::fs::write(&file, text.to_string()).unwrap();
    let environment = [("OUTRIDER__VERIFIER__MODE".into(), "loud".into())];
    let (loaded, errors) = survey::<Config>(Some(&file), environment, &json!({}));
    let mut keys: Vec<_> = errors.iter().map(ConfigError::key).collect();
    keys.sort_unstable();
    let expected = ["lissten", "max_batch", "mode", "peers.1"].map(|key| format!("verifier.{key}"));
    assert_eq!(keys, expected);
    let expected = Config {
        verifier: Verifier {
            temperature: 0.5,
            ..Verifier::default()
        },
        log: "debug".to_owned(),
    };
    assert_eq!(loaded.expect("what is left").value, expected);

    std::fs::write(&file, "{").unwrap();
    let (loaded, errors) = survey::<Config>(Some(&file), [], &json!({}));
    assert!(loaded.is_none() && errors.len() == 1, "{errors:?}");
}
