//! What no output can follow is refused before anything is asked of the peers, at once, and harms nobody.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wire::v1::{GenerateRequest, Grammar};

use super::{following, under};
use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft};
use crate::errors::{Case, each_refused};

/// How long a refusal takes at most, on a busy machine too.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A schema that is its own part, many times over.
fn nested(depth: usize) -> Value {
    (0..depth).fold(
        json!({"type": "integer"}),
        |inner, _| json!({"type": "array", "items": inner}),
    )
}

fn of(change: impl FnOnce(&mut Grammar)) -> GenerateRequest {
    let mut grammar = Grammar::default();
    change(&mut grammar);
    following(grammar, 8)
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused_by_name() {
    let cluster = Cluster::start(draft()).await;
    let schema = |schema: Value| under(&schema, 8);
    let regex = |regex: &str| of(|it| regex.clone_into(&mut it.regex));
    let lark = |lark: &str| of(|it| lark.clone_into(&mut it.lark));
    let mut ignoring = schema(json!({}));
    ignoring.ignore_eos = true;
    let mut long = schema(json!({}));
    long.sampling.get_or_insert_default().min_tokens = 4;
    let mut banned = regex("a");
    let sampling = banned.sampling.get_or_insert_default();
    // Token 5 is none that the output begins with.
    sampling.allowed_token_ids = vec![5];
    let cases: Vec<Case> = vec![
        ("sampling.grammar | allowed_token_ids", banned),
        ("sampling.grammar | 0 are given", of(|_| {})),
        (
            "sampling.grammar | 2 are given",
            of(|it| {
                it.regex = "a".to_owned();
                it.lark = "start: \"a\"".to_owned();
            }),
        ),
        (
            "sampling.grammar | nonsense",
            schema(json!({"type": "nonsense"})),
        ),
        (
            "sampling.grammar | no JSON",
            of(|it| it.json_schema = "{".to_owned()),
        ),
        ("sampling.grammar", schema(json!(false))),
        (
            "sampling.grammar",
            schema(json!({"$ref": "https://example.com/schema.json"})),
        ),
        ("sampling.grammar", schema(json!({"$ref": "#/$defs/none"}))),
        (
            "sampling.grammar | look",
            schema(json!({"type": "string", "pattern": "a(?=b)"})),
        ),
        (
            "sampling.grammar",
            schema(json!({"type": "integer", "minimum": 2, "maximum": 1})),
        ),
        (
            "sampling.grammar",
            schema(json!({"allOf": [{"type": "string"}, {"type": "integer"}]})),
        ),
        ("sampling.grammar", regex("(")),
        ("sampling.grammar | look", regex("(?!a)b")),
        ("sampling.grammar", lark("start: nothing")),
        ("sampling.grammar", lark("start: start")),
        (
            "sampling.grammar | choose",
            of(|it| it.choice = vec![String::new()]),
        ),
        (
            "sampling.grammar | bytes",
            of(|it| it.json_schema = " ".repeat(300 << 10)),
        ),
        ("ignore_eos | grammar", ignoring),
        ("min_tokens | grammar", long),
    ];
    for case in cases {
        let (began, what) = (Instant::now(), case.0);
        each_refused(&cluster.coordinator, vec![case]).await;
        assert!(began.elapsed() < AT_ONCE, "{what}: {:?}", began.elapsed());
    }
}

/// Each is answered or refused, and soon.
#[tokio::test]
async fn hostile_grammars_take_little_time_and_nobody_elses() {
    let cluster = Cluster::start(draft()).await;
    let wide: serde_json::Map<_, _> = (0..3_000)
        .map(|at| {
            (
                format!("field {at}"),
                json!({"type": "string", "pattern": "^[a-z]{1,40}$"}),
            )
        })
        .collect();
    let hostile = vec![
        of(|it| it.regex = "(((a{1,100}){1,100}){1,100}){1,100}".to_owned()),
        of(|it| it.regex = "(a*)*(b*)*(c*)*$".repeat(200)),
        of(|it| it.lark = "start: start start | \"a\" | ".to_owned()),
        of(|it| it.lark = "start: a a a a a a a a\na: start | \"b\"".to_owned()),
        under(&json!({"type": "string", "minLength": 100_000}), 8),
        under(&json!({"type": "array", "minItems": 1_000_000}), 8),
        under(&json!({"type": "object", "properties": wide}), 8),
        under(&nested(2_000), 8),
        under(
            &json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            8,
        ),
        under(
            &json!({"anyOf": (0..2_000).map(|at| json!({"const": at})).collect::<Vec<_>>()}),
            8,
        ),
    ];
    for requested in hostile {
        let what = format!("{:.80}", format!("{:?}", requested.sampling));
        let began = Instant::now();
        let _ = crate::client::try_generate(&cluster.coordinator, requested).await;
        let took = began.elapsed();
        assert!(took < 3 * AT_ONCE, "{what}: {took:?}");
        let plain = request("Once upon a time", 4).temperature(0.0);
        generate(&cluster.coordinator, plain).await;
    }
}
