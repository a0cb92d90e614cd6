//! A configuration that cannot be is refused before anything is served, by setting and limit.

use ::drafter::{DrafterConfig, Loaded};
use model::bigram::BigramFile;
use model::head::AcceptanceHead;
use model::source::{ModelSource, ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat, embedded};
use ops::config::Switch;
use speculation::max_gram::Bigram;
use speculation::verification::AcceptanceLabel;

use super::learned::{head, saved};
use super::{draft_with_heads, smaller};
use crate::cluster::draft;

/// A change that a configuration cannot bear, and what must be said of it: `setting | part`.
struct Fault(&'static str, Box<dyn FnOnce(&mut DrafterConfig)>);

fn fault(named: &'static str, change: impl FnOnce(&mut DrafterConfig) + 'static) -> Fault {
    Fault(named, Box::new(change))
}

/// Checks that each fault is named, in a drafter of `model` and what the configuration adds.
fn each_is_refused(
    loaded: impl Fn(&DrafterConfig) -> Result<Loaded, ops::service_error::ServiceError>,
    faults: Vec<Fault>,
) {
    for Fault(named, change) in faults {
        let mut config = DrafterConfig::default();
        change(&mut config);
        let message = loaded(&config).expect_err(named).to_string();
        let (setting, part) = named.split_once(" | ").expect("two parts");
        let is_first = message.starts_with(&format!("drafter.{setting}"));
        assert!(is_first && message.contains(part), "{named}: {message}");
    }
}

/// A model of three tokens.
fn of_another_vocabulary() -> ServedModel<Model> {
    let config = ModelConfig {
        vocab_size: 64,
        ..embedded::draft().expect("embedded").config().clone()
    };
    let tokenizer = r#"{"version": "1.0", "added_tokens": [], "model":
        {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2}}}"#;
    let random = Checkpoint::random(config, 3).expect("random weights");
    let random = random.with_tokenizer(tokenizer.as_bytes().to_vec());
    serve(&random, WeightFormat::Q8_0, "other".to_owned(), "other").expect("a model")
}

#[test]
fn a_cascade_that_cannot_be() {
    let k = |named, rows: &'static [&'static [u32]]| {
        fault(named, move |c| {
            c.cascade.k = rows.iter().map(|row| row.to_vec()).collect();
        })
    };
    each_is_refused(
        |config| Loaded::of(vec![draft(), smaller()], config),
        vec![
            k("cascade.k | 2 rows, expected 3", &[&[2, 10], &[0, 10]]),
            k("cascade.k | drafts are draft, smaller, max-gram", &[&[1]]),
            k(
                "cascade.k | row 0 adds up to 0",
                &[&[0; 3], &[0; 3], &[0; 3]],
            ),
            fault("cascade.lenience | 0.5, expected", |c| {
                c.cascade.lenience = 0.5;
            }),
            fault("cascade.max_gram_tokens | 0, expected 1 to 1024", |c| {
                c.cascade.max_gram_tokens = 0;
            }),
        ],
    );
}

/// Where a call within a cascade begins has 16 bits in the key of its random numbers.
#[test]
fn blocks_are_not_longer_than_a_key_can_say() {
    let with = |tokens: u32| DrafterConfig {
        max_draft_tokens: tokens.try_into().expect("not zero"),
        ..DrafterConfig::default()
    };
    let of_model = Loaded::of(vec![draft()], &with(65_536));
    let mut alone = with(65_536);
    "none".clone_into(&mut alone.model.path);
    for refused in [of_model, Loaded::load(&alone)] {
        let message = refused.expect_err("too long").to_string();
        let reported = "drafter.max_draft_tokens: 65536 is out of range, expected 1 to 65535";
        assert_eq!(message, reported);
    }
    assert!(Loaded::of(vec![draft()], &with(65_535)).is_ok());
}

/// The number of drafts is what counts, however it comes about.
#[test]
fn a_matrix_counts_max_gram_only_where_there_is_a_table() {
    let mut config = DrafterConfig::default();
    config.cascade.k = vec![vec![2, 10], vec![0, 10]];
    assert!(Loaded::of(vec![draft()], &config).is_ok());
    "none".clone_into(&mut config.bigram);
    let message = Loaded::of(vec![draft()], &config)
        .expect_err("one draft")
        .to_string();
    assert!(message.contains("2 rows, expected 1") && message.contains("drafts are draft"));
    assert!(Loaded::of(vec![draft(), smaller()], &config).is_ok());
}

#[test]
fn max_gram_is_not_left_out_in_silence() {
    each_is_refused(
        |config| Loaded::of(vec![draft(), smaller()], config),
        vec![fault("cascade.max_gram | drafter.bigram = \"none\"", |c| {
            c.cascade.max_gram = Switch::On;
            "none".clone_into(&mut c.bigram);
        })],
    );
    let mut config = DrafterConfig::default();
    config.cascade.max_gram = Switch::On;
    assert!(Loaded::of(vec![draft()], &config).is_ok());
}

#[test]
fn models_and_tables_of_another_vocabulary() {
    let source = ModelSource::embedded("small");
    each_is_refused(
        |config| Loaded::beside(of_another_vocabulary(), config),
        vec![
            fault(
                "cascade.models[0] | another vocabulary (4096 tokens) than 'other' (3",
                |c| {
                    c.cascade.models = vec![source.clone(), source];
                },
            ),
            fault("bigram | another vocabulary (4096 tokens)", |c| {
                "embedded".clone_into(&mut c.bigram);
            }),
        ],
    );
    // What goes with the built-in vocabulary by default is left out.
    assert!(Loaded::beside(of_another_vocabulary(), &DrafterConfig::default()).is_ok());
}

#[test]
fn models_and_tables_that_are_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broken.safetensors");
    std::fs::write(&file, "nothing").expect("written");
    let broken = file.display().to_string();
    let missing: ModelSource = serde_json::from_str(r#"{"path": "no/such/model"}"#).expect("JSON");
    each_is_refused(
        |config| Loaded::beside(draft(), config),
        vec![
            fault("cascade.models[0] | no/such/model", |c| {
                c.cascade.models = vec![missing];
            }),
            fault("bigram | no/such/table", |c| {
                "no/such/table".clone_into(&mut c.bigram);
            }),
            fault("bigram | outrider-bench bigram build", |c| {
                c.bigram = broken;
            }),
        ],
    );
}

#[test]
fn heads_of_another_model_or_twice_for_a_label() {
    let coupled = head(AcceptanceLabel::Coupled);
    let (_folder, one) = saved(&coupled);
    let (_other_folder, two) = saved(&coupled);
    let mut info = coupled.info().clone();
    info.draft_fingerprint = "0123456789abcdef".to_owned();
    let other = AcceptanceHead::new(info, coupled.weights().clone(), "a test").expect("a head");
    let (_third_folder, other) = saved(&other);
    let [one, two, other] = [one, two, other].map(|path| path.display().to_string());
    let heads = |named, heads: [&str; 2]| {
        let heads = heads.map(str::to_owned);
        fault(named, |c| c.heads = heads.into())
    };
    each_is_refused(
        |config| Loaded::beside(draft_with_heads(), config),
        vec![
            heads("heads | both for label 'coupled'", [&one, &two]),
            heads("heads | another draft model", [&one, &other]),
            heads("heads | no/such/head", [&one, "no/such/head"]),
        ],
    );
    // One that is named takes the place of one found with the model.
    let config = DrafterConfig {
        heads: vec![one.clone()],
        ..DrafterConfig::default()
    };
    let mut model = draft_with_heads();
    model.heads = vec![
        head(AcceptanceLabel::Coupled),
        head(AcceptanceLabel::Rejection),
    ];
    let loaded = Loaded::beside(model, &config).expect("in order");
    let held = loaded.heads.iter();
    let held: Vec<_> = held
        .map(|head| (head.info().label, head.origin()))
        .collect();
    let found = (AcceptanceLabel::Rejection, "a test");
    assert_eq!(held, [(AcceptanceLabel::Coupled, &one[..]), found]);
}

/// A GGUF file's weights have a fingerprint of their own, whatever they were made from.
#[test]
fn a_head_of_what_a_gguf_file_was_made_from_is_taken() {
    let (_folder, file) = saved(&head(AcceptanceLabel::Coupled));
    let config = DrafterConfig {
        heads: vec![file.display().to_string()],
        ..DrafterConfig::default()
    };
    let of_file = |is_converted| {
        let mut model = draft_with_heads();
        "of a file".clone_into(&mut model.weights_fingerprint);
        model.heads.clear();
        model.is_converted = is_converted;
        Loaded::of(vec![model], &config)
    };
    let message = of_file(false).expect_err("another model").to_string();
    assert!(message.contains("another draft model"), "{message}");
    assert_eq!(of_file(true).expect("in order").heads.len(), 1);
}

#[test]
fn max_gram_alone_takes_nothing_that_needs_a_model() {
    let none = |named, change: fn(&mut DrafterConfig)| {
        fault(named, move |c| {
            "none".clone_into(&mut c.model.path);
            change(c);
        })
    };
    each_is_refused(
        Loaded::load,
        vec![
            none("heads | model.path is none", |c| {
                c.heads = vec!["x".to_owned()];
            }),
            none("cascade.models | model.path is none", |c| {
                c.cascade.models = vec![ModelSource::embedded("draft")];
            }),
            none("cascade.k | model.path is none", |c| {
                c.cascade.k = vec![vec![1]];
            }),
            none("cascade.lenience | 0.5, expected", |c| {
                c.cascade.lenience = 0.5;
            }),
            none("bigram | knows its vocabulary by a table", |c| {
                "none".clone_into(&mut c.bigram);
            }),
        ],
    );
}

/// A table beside the model is found.
#[test]
fn a_table_in_the_models_folder_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let embedded = BigramFile::open("embedded").expect("a table");
    let mine = BigramFile {
        table: Bigram::new(vec![7; 4096]).expect("a table"),
        ..embedded
    };
    mine.save(&folder.path().join("bigram.safetensors"))
        .expect("written");
    let mut config = DrafterConfig::default();
    config.model.path = folder.path().display().to_string();
    let loaded = Loaded::beside(draft(), &config).expect("in order");
    assert_eq!(
        loaded.bigram.as_ref().map(|file| file.table.next(5)),
        Some(Some(7))
    );
}
