//! A configuration that cannot be is refused before anything is served, by setting and limit.

use ::drafter::{DrafterConfig, Loaded, MaxGramDraft};
use model::bigram::BigramFile;
use model::head::AcceptanceHead;
use model::source::{ModelSource, ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat, embedded};
use speculation::drafting::AcceptanceLabel;
use speculation::max_gram::Bigram;

use super::learned::{head, saved};
use super::{draft_with_heads, smaller};
use crate::cluster::draft;

type Fault = Box<dyn Fn(&mut DrafterConfig)>;

/// Checks that each fault is named, in a drafter of `model` and what the configuration adds.
fn each_is_refused(
    loaded: impl Fn(&DrafterConfig) -> Result<Loaded, ::drafter::DrafterError>,
    faults: Vec<(&str, &str, Fault)>,
) {
    for (setting, part, fault) in faults {
        let mut config = DrafterConfig::default();
        fault(&mut config);
        let message = loaded(&config).expect_err(part).to_string();
        let named = format!("drafter.{setting}");
        assert!(
            message.starts_with(&named) && message.contains(part),
            "{message}"
        );
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
    let k = |rows: &'static [&'static [u32]]| -> Fault {
        Box::new(move |config| config.cascade.k = rows.iter().map(|row| row.to_vec()).collect())
    };
    each_is_refused(
        |config| Loaded::of(vec![draft(), smaller()], config),
        vec![
            ("cascade.k", "2 rows, expected 3", k(&[&[2, 10], &[0, 10]])),
            (
                "cascade.k",
                "drafts are draft, smaller, max-gram",
                k(&[&[1]]),
            ),
            (
                "cascade.k",
                "row 1, column 0 is 4, expected 0",
                k(&[&[2, 2, 2], &[4, 2, 2], &[0, 0, 2]]),
            ),
            (
                "cascade.k",
                "row 2 has 2 entries",
                k(&[&[2, 2, 2], &[0, 2, 2], &[0, 0]]),
            ),
            (
                "cascade.k",
                "row 0 adds up to 0",
                k(&[&[0; 3], &[0; 3], &[0; 3]]),
            ),
            (
                "cascade.lenience",
                "0.5, expected",
                Box::new(|c| c.cascade.lenience = 0.5),
            ),
            (
                "cascade.lenience",
                "NaN",
                Box::new(|c| c.cascade.lenience = f64::NAN),
            ),
            (
                "cascade.max_gram_tokens",
                "0, expected 1 to 1024",
                Box::new(|c| c.cascade.max_gram_tokens = 0),
            ),
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
        let told = "drafter.max_draft_tokens: 65536 is out of range, expected 1 to 65535";
        assert_eq!(message, told);
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
        vec![(
            "cascade.max_gram",
            "drafter.bigram = \"none\"",
            Box::new(|config| {
                config.cascade.max_gram = MaxGramDraft::Yes;
                "none".clone_into(&mut config.bigram);
            }),
        )],
    );
    let mut config = DrafterConfig::default();
    config.cascade.max_gram = MaxGramDraft::Yes;
    assert!(Loaded::of(vec![draft()], &config).is_ok());
}

#[test]
fn models_and_tables_of_another_vocabulary() {
    let source = ModelSource::embedded("small");
    let twice: Fault = Box::new(move |c| c.cascade.models = vec![source.clone(), source.clone()]);
    each_is_refused(
        |config| Loaded::beside(of_another_vocabulary(), config),
        vec![
            (
                "cascade.models[0]",
                "another vocabulary (4096 tokens) than 'other' (3",
                twice,
            ),
            (
                "bigram",
                "another vocabulary (4096 tokens)",
                Box::new(|c| "embedded".clone_into(&mut c.bigram)),
            ),
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
            (
                "cascade.models[0]",
                "no/such/model",
                Box::new(move |c| c.cascade.models = vec![missing.clone()]),
            ),
            (
                "bigram",
                "no/such/table",
                Box::new(|c| "no/such/table".clone_into(&mut c.bigram)),
            ),
            (
                "bigram",
                "outrider bigram build",
                Box::new(move |c| c.bigram.clone_from(&broken)),
            ),
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
    let files = |paths: &[&std::path::PathBuf]| -> Fault {
        let paths: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        Box::new(move |config| config.heads.clone_from(&paths))
    };
    each_is_refused(
        |config| Loaded::beside(draft_with_heads(), config),
        vec![
            ("heads", "both for label 'coupled'", files(&[&one, &two])),
            ("heads", "another draft model", files(&[&one, &other])),
            ("heads", "no/such/head", files(&[&"no/such/head".into()])),
        ],
    );
    // One that is named takes the place of one found with the model.
    let mut config = DrafterConfig::default();
    files(&[&one])(&mut config);
    let mut model = draft_with_heads();
    model.heads = vec![
        head(AcceptanceLabel::Coupled),
        head(AcceptanceLabel::Rejection),
    ];
    let loaded = Loaded::beside(model, &config).expect("in order");
    let held = loaded.heads().iter();
    let held: Vec<_> = held
        .map(|head| (head.info().label, head.origin()))
        .collect();
    let named = one.to_str().expect("UTF-8");
    let found = (AcceptanceLabel::Rejection, "a test");
    assert_eq!(held, [(AcceptanceLabel::Coupled, named), found]);
}

#[test]
fn max_gram_alone_takes_nothing_that_needs_a_model() {
    let none = |change: Fault| -> Fault {
        Box::new(move |config| {
            "none".clone_into(&mut config.model.path);
            change(config);
        })
    };
    let other = ModelSource::embedded("draft");
    each_is_refused(
        Loaded::load,
        vec![
            (
                "heads",
                "model.path is none",
                none(Box::new(|c| c.heads = vec!["x".to_owned()])),
            ),
            (
                "cascade.models",
                "model.path is none",
                none(Box::new(move |c| c.cascade.models = vec![other.clone()])),
            ),
            (
                "cascade.k",
                "model.path is none",
                none(Box::new(|c| c.cascade.k = vec![vec![1]])),
            ),
            (
                "cascade.lenience",
                "0.5, expected",
                none(Box::new(|c| c.cascade.lenience = 0.5)),
            ),
            (
                "cascade.max_gram_tokens",
                "0, expected 1 to 1024",
                none(Box::new(|c| c.cascade.max_gram_tokens = 0)),
            ),
            (
                "bigram",
                "nobody",
                none(Box::new(|c| "none".clone_into(&mut c.bigram))),
            ),
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
    assert_eq!(loaded.bigram().map(|file| file.table.next(5)), Some(7));
}
