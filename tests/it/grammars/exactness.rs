//! Every answer is of its grammar, and drafts change no byte of it.

use serde_json::json;
use wire::v1::{GenerateRequest, Grammar};

use super::schemas::all;
use super::{following, under, validates};
use crate::client::{With, generate};
use crate::cluster::{Cluster, Service, config, coordinator, draft};
use crate::prompts::full_sweep;

/// Ways of drafting under coupled verification, which give the target's own tokens.
type Way = (&'static str, fn(GenerateRequest) -> GenerateRequest);

const WAYS: [Way; 6] = [
    ("a chain", |it| it.draft_len(4)),
    ("a stream", |it| it.with("schedule", "stream")),
    ("a comb", |it| it.draft_len(3).with("tree", "comb:3")),
    ("alternates", |it| {
        it.draft_len(3).with("tree", "alternates:2")
    }),
    ("copies", |it| it.draft_len(6).with("drafting", "max-gram")),
    ("the default", |it| it),
];

/// Checks that `ways` give the answer of the target alone; returns it.
async fn compared(
    coordinator: &Service,
    requested: &GenerateRequest,
    ways: &[Way],
    what: &str,
) -> crate::client::Answer {
    let expected = generate(coordinator, requested.clone().method("target-only")).await;
    for (way, change) in ways {
        let answer = generate(coordinator, change(requested.clone())).await;
        assert_eq!(answer.tokens, expected.tokens, "{what} by {way}");
        assert_eq!(answer.text, expected.text, "{what} by {way}");
        assert_eq!(
            answer.finished.reason(),
            expected.finished.reason(),
            "{what} by {way}"
        );
    }
    expected
}

#[tokio::test]
async fn answers_validate_and_are_the_targets_whatever_drafts() {
    let cluster = Cluster::start(draft()).await;
    let made = if full_sweep() { 60 } else { 10 };
    let (mut whole, mut asked) = (0, 0);
    for (index, (name, schema)) in all(made).iter().enumerate() {
        for temperature in [0.0, 1.0] {
            let requested = under(schema, 200)
                .temperature(temperature)
                .seed(index as u64);
            let what = format!("{name}, T={temperature}");
            let turn = index % WAYS.len();
            let ways = if full_sweep() {
                &WAYS[..]
            } else {
                &WAYS[turn..=turn]
            };
            let answer = compared(&cluster.coordinator, &requested, ways, &what).await;
            asked += 1;
            whole += usize::from(validates(&answer, schema, &what));
        }
    }
    // The others are long lists and texts of a small model.
    assert!(
        10 * whole > 8 * asked,
        "{whole} of {asked} came to their end"
    );
}

#[tokio::test]
async fn every_verification_validates() {
    let cluster = Cluster::start(draft()).await;
    let schemas = all(0);
    for (index, method) in ["rejection", "block", "block-greedy", "spec-cascade", "bild"]
        .iter()
        .enumerate()
    {
        for (name, schema) in schemas.iter().skip(index * 3).take(6) {
            for temperature in [0.0, 1.0] {
                let requested = under(schema, 200).temperature(temperature).method(method);
                let answer = generate(&cluster.coordinator, requested.seed(7)).await;
                let what = format!("{method}, {name}, T={temperature}");
                assert_eq!(answer.finished.effective_method, *method, "{what}");
                validates(&answer, schema, &what);
            }
        }
    }
}

#[tokio::test]
async fn expressions_choices_and_grammars_are_followed_too() {
    let cluster = Cluster::start(draft()).await;
    for seed in 0..4 {
        let of = |grammar| following(grammar, 60).temperature(1.0).seed(seed);
        let regex = of(Grammar {
            regex: "[A-C]{3}-[0-9]{2,4}".to_owned(),
            ..Default::default()
        });
        let answer = compared(&cluster.coordinator, &regex, &WAYS, "a regex").await;
        let (letters, digits) = answer.text.split_once('-').expect("a line");
        assert!(
            letters.len() == 3 && (2..=4).contains(&digits.len()),
            "{}",
            answer.text
        );
        let choice = of(Grammar {
            choice: vec!["yes".to_owned(), "no, never".to_owned()],
            ..Default::default()
        });
        let answer = compared(&cluster.coordinator, &choice, &WAYS, "a choice").await;
        assert!(
            ["yes", "no, never"].contains(&&answer.text[..]),
            "{}",
            answer.text
        );
        let lark = of(Grammar {
            lark: "start: \"<\" (start | \"o\") \">\"".to_owned(),
            ..Default::default()
        });
        let answer = compared(&cluster.coordinator, &lark, &WAYS, "a grammar").await;
        if !answer.text.ends_with('<') {
            let open = answer.text.matches('<').count();
            assert_eq!(open, answer.text.matches('>').count(), "{}", answer.text);
        }
    }
}

/// What must come needs no forward of its own: neither of the target where that decodes, nor of a draft model.
#[tokio::test]
async fn forced_tokens_save_forwards() {
    let cluster = Cluster::start(draft()).await;
    let alone = coordinator(config(&[], &[cluster.verifier.url()])).await;
    let names = [
        "the name of the first person",
        "the name of the second person",
        "the number of balls",
    ];
    let digit = json!({"type": "integer", "minimum": 0, "maximum": 9});
    let properties = names.map(|name| (name.to_owned(), digit.clone()));
    let properties = serde_json::Map::from_iter(properties);
    let schema = json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false});
    let requested = under(&schema, 200).temperature(0.0);
    let answer = compared(&alone, &requested, &WAYS[5..], "forced").await;
    assert!(validates(&answer, &schema, "forced"));

    let streamed = generate(&alone, requested.clone()).await;
    assert_eq!(streamed.setting("schedule"), Some("stream"));
    let (counted, tokens) = (streamed.statistics(), streamed.tokens.len() as u32);
    assert!(
        2 * counted.target_forwards < tokens,
        "{counted:?} for {tokens} tokens"
    );
    let rounds = generate(&cluster.coordinator, requested.draft_len(6)).await;
    assert_eq!(rounds.tokens, streamed.tokens);
    let counted = rounds.statistics();
    assert!(
        2 * counted.draft_forwards < counted.num_draft_tokens,
        "{counted:?}"
    );
}
