//! The page at `/`, and what it is made of: methods as the server describes them, tokens and rounds as they come.

use coordinator::CoordinatorConfig;
use serde_json::{Value, json};
use wire::v1::Origin;

use super::{Reply, demanding, serving, serving_in};
use crate::client::{With, generate, request};

#[tokio::test]
async fn the_page_may_do_nothing_but_ask_its_own_port() {
    let serving = serving(|_| {}).await;
    for (path, kind) in [
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/page.css", "text/css"),
    ] {
        let reply = serving.get(path).await;
        assert_eq!(reply.status, 200, "{path}");
        for header in [
            &format!("content-type: {kind}; charset=utf-8")[..],
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(reply.headers.contains(header), "{path}: {header}");
        }
        for elsewhere in ["src=\"http", "href=\"/", "src=\"/", "url("] {
            assert!(
                path != "/" || !reply.body.contains(elsewhere),
                "{elsewhere}"
            );
        }
        // What a browser has already is not sent again.
        let tag = reply.headers.split("etag: ").nth(1).expect("a tag");
        let tag = tag.lines().next().expect("a line");
        let again = format!("GET {path} HTTP/1.0\r\nif-none-match: {tag}\r\n\r\n");
        let again = serving.exchange(again.as_bytes()).await;
        assert_eq!((again.status, &again.body[..]), (304, ""), "{path}");
    }
}

#[tokio::test]
async fn the_page_can_be_switched_off_and_needs_no_token_where_answers_do() {
    let off = serving(|config| config.http.page = false).await;
    for path in ["/", "/page.js", "/page.css"] {
        assert_eq!(off.get(path).await.status, 404, "{path}");
    }
    assert_eq!(off.get("/v1/methods").await.status, 200);
    let (_file, process) = demanding("somebody 0123456789abcdef0123456789abcdef");
    let serving = serving_in(process, |_| {}).await;
    assert_eq!(serving.get("/").await.status, 200);
    assert_eq!(serving.get("/v1/methods").await.status, 401);
}

#[tokio::test]
async fn methods_are_told_as_over_grpc() {
    let serving = serving(|config| config.lossless_only = true).await;
    let told = serving.get("/v1/methods").await.json();
    let listing = wire::settings::listing(true);
    assert_eq!(
        told["methods"].as_array().map(Vec::len),
        Some(listing.methods.len())
    );
    for (told, method) in told["methods"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(&listing.methods)
    {
        assert_eq!(
            (&told["name"], &told["allowed"]),
            (&json!(method.name), &json!(method.allowed))
        );
        let parameter = &method.parameters.first();
        let parameter =
            parameter.map(|it| json!([it.name, it.r#type, it.range, it.default, it.help]));
        let first = &told["parameters"][0];
        let first = ["name", "type", "range", "default", "help"].map(|name| first[name].clone());
        assert!(parameter.is_none_or(|parameter| parameter == json!(first)));
    }
    assert_eq!(
        told["rules"].as_array().map(Vec::len),
        Some(listing.rules.len())
    );
    assert_eq!(
        told["axes"][0]["values"][0]["form"],
        json!(listing.axes[0].values[0].form)
    );
}

/// What a stream of one output tells, piece by piece.
#[derive(Default)]
struct Told {
    text: String,
    tokens: Vec<Value>,
    rounds: Vec<Value>,
}

fn told(reply: &Reply, text: impl Fn(&Value) -> &Value) -> Told {
    let mut told = Told::default();
    for event in reply.events() {
        let choice = &event["choices"][0];
        told.text += text(choice).as_str().unwrap_or_default();
        told.tokens
            .extend(choice["tokens"].as_array().into_iter().flatten().cloned());
        if let Some(round) = choice.get("round") {
            // It is of tokens that have come.
            let end = round["base_len"].as_u64().expect("a number")
                + round["emitted"].as_u64().expect("a number");
            assert!(end as usize <= told.tokens.len(), "{round}");
            told.rounds.push(round.clone());
        }
    }
    told
}

#[tokio::test]
async fn each_token_comes_with_where_it_is_from_and_each_round_with_what_it_came_to() {
    let serving = serving(|_| {}).await;
    let speculation = json!({ "schedule": "rounds", "draft_len": 4 });
    let asked = json!({ "stream": true, "report_rounds": true, "speculation": speculation, "ignore_eos": true });
    let mut same = request("Once upon a time", 24)
        .seed(7)
        .with("schedule", "rounds")
        .draft_len(4)
        .ignoring_eos();
    same.report_rounds = true;
    let expected = generate(&serving.coordinator, same).await;
    let told_in = told(
        &serving.completion(asked.clone()).await,
        |choice| &choice["text"],
    );
    let origins = expected.origins.iter().map(|origin| match origin {
        Origin::Accepted => "accepted",
        Origin::Recovered => "recovered",
        Origin::Bonus => "bonus",
        _ => "target",
    });
    let pairs: Vec<_> = expected
        .tokens
        .iter()
        .zip(origins)
        .map(|(id, origin)| json!([id, origin]))
        .collect();
    let found: Vec<_> = told_in
        .tokens
        .iter()
        .map(|token| json!([token["id"], token["origin"]]))
        .collect();
    assert_eq!(found, pairs);
    assert!(pairs.iter().any(|pair| pair[1] == "accepted"));
    let pieces = told_in
        .tokens
        .iter()
        .filter_map(|token| token["text"].as_str());
    assert_eq!(pieces.collect::<String>(), expected.text);
    assert_eq!(told_in.text, expected.text);
    let blocks = |rounds: &[Value]| -> Vec<Value> {
        let block = |round: &Value| {
            ["round", "base_len", "drafted", "accepted", "emitted"]
                .map(|name| round[name].clone())
                .into()
        };
        rounds.iter().map(block).collect()
    };
    let of_grpc: Vec<_> = expected.rounds.iter().map(|round| json!(round)).collect();
    assert_eq!(blocks(&told_in.rounds), blocks(&of_grpc));
    assert!(
        told_in
            .rounds
            .iter()
            .all(|round| round["verifier"]["forward_us"].as_u64() > Some(0))
    );

    let by_drafter = |round: &Value| {
        let accepted = &round["accepted"];
        let of_one = json!([{ "source": "model", "tokens": accepted }]);
        round["accepted_by"] == if accepted == 0 { Value::Null } else { of_one }
    };
    assert!(
        told_in.rounds.iter().all(by_drafter),
        "{:?}",
        told_in.rounds
    );

    // While the target decodes a round is a forward, and a chat tells the same.
    let messages = json!([{ "role": "user", "content": "Once upon a time" }]);
    let body = json!({ "messages": messages, "max_tokens": 24, "seed": 7, "temperature": 1, "stream": true,
        "report_rounds": true, "prediction": { "type": "content", "content": expected.text },
        "speculation": { "schedule": "stream" } });
    let reply = serving.post("/v1/chat/completions", &body).await;
    let in_chat = told(&reply, |choice| &choice["delta"]["content"]);
    let emitted = in_chat
        .rounds
        .iter()
        .filter_map(|round| round["emitted"].as_u64());
    assert_eq!(emitted.sum::<u64>() as usize, in_chat.tokens.len());
    assert!(!in_chat.tokens.is_empty() && !in_chat.text.is_empty());
    let mut by_prediction = 0;
    for round in &in_chat.rounds {
        let by = round["accepted_by"].as_array().into_iter().flatten();
        let sum: u64 = by.clone().filter_map(|by| by["tokens"].as_u64()).sum();
        assert_eq!(round["accepted"], sum, "{round}");
        by_prediction += by.filter(|by| by["source"] == "prediction").count();
    }
    assert!(by_prediction > 0, "{:?}", in_chat.rounds);

    let silent = serving.completion(json!({ "stream": true })).await;
    assert!(!silent.body.contains("\"origin\"") && !silent.body.contains("\"round\""));
    let whole = serving.completion(json!({ "report_rounds": true })).await;
    assert!(whole.refused(400, Some("report_rounds")).contains("stream"));
    let body = json!({ "input": "Once", "stream": true, "report_rounds": true });
    let response = serving.post("/v1/responses", &body).await;
    response.refused(400, Some("report_rounds"));
}

#[tokio::test]
async fn a_round_says_where_it_went_on_without_the_drafter() {
    let nobody = |config: &mut CoordinatorConfig| {
        config.models[0].drafters = vec!["http://127.0.0.1:9".to_owned()];
    };
    let serving = serving(nobody).await;
    let speculation = json!({ "schedule": "rounds", "draft_len": 4 });
    let body = json!({ "stream": true, "report_rounds": true, "speculation": speculation });
    let reply = serving.completion(body).await;
    let told = told(&reply, |choice| &choice["text"]);
    let fallbacks = |round: &Value| round["fallbacks"].as_array().cloned().unwrap_or_default();
    let lost: Vec<Value> = told.rounds.iter().flat_map(fallbacks).collect();
    assert!(!lost.is_empty(), "{}", reply.body);
    assert_eq!(
        (&lost[0]["position"], &fallbacks(&told.rounds[0])[0]),
        (&json!(0), &lost[0])
    );
    assert!(
        lost[0]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("no drafter is reachable")),
        "{lost:?}"
    );

    // And each is told once.
    let mut same = request("Once", 24)
        .with("schedule", "rounds")
        .draft_len(4)
        .ignoring_eos();
    same.report_rounds = true;
    let answer = generate(&serving.coordinator, same).await;
    let by_rounds: Vec<_> = answer
        .rounds
        .iter()
        .flat_map(|round| round.fallbacks.clone())
        .collect();
    assert_eq!(by_rounds, answer.statistics().fallbacks);
}
