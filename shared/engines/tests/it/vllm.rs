//! vLLM's two routes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use engines::{
    ScoreRequest, ScoredRows, ScoredSequence, ScoringEngine, ScoringError, Vllm, VllmRoute,
};
use serde_json::{Value, json};
use speculation::TokenId;
use speculation::certificate::PartialRow;

use crate::model::{MODEL, likeliest, row};
use crate::stub::{Request, Response, Stub, soon};

fn ids(value: &Value) -> Vec<TokenId> {
    let list = value.as_array().expect("a list").iter();
    list.map(|id| id.as_u64().expect("an id") as TokenId)
        .collect()
}

/// A row for each token, the first null: the most likely tokens, and the one that follows if it is none of them.
fn prompt_logprobs(tokens: &[TokenId], top: usize) -> Value {
    let rows = (1..tokens.len()).map(|end| {
        let row = row(&tokens[..end], 1.0);
        let mut listed = vec![tokens[end]];
        listed.extend(likeliest(&row, top));
        let mut entries = json!({});
        for token in listed {
            let rank = row
                .iter()
                .filter(|&&other| other >= row[token as usize])
                .count();
            entries[token.to_string()] =
                json!({"logprob": row[token as usize], "rank": rank, "decoded_token": "ents"});
        }
        entries
    });
    std::iter::once(Value::Null).chain(rows).collect()
}

/// A matrix as NumPy writes it.
fn npy(rows: &[Vec<f32>]) -> String {
    let width = rows.first().map_or(0, Vec::len);
    let shape = format!("({}, {width})", rows.len());
    let mut described = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while (described.len() + 11) % 64 != 0 {
        described.push(' ');
    }
    described.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((described.len() as u16).to_le_bytes());
    bytes.extend(described.as_bytes());
    bytes.extend(
        rows.iter()
            .flatten()
            .flat_map(|number| number.to_le_bytes()),
    );
    BASE64_STANDARD.encode(bytes)
}

pub(crate) fn answer_generate(request: &Request) -> Value {
    assert_eq!(request.path, "/inference/v1/generate");
    let tokens = ids(&request.body["token_ids"]);
    let params = &request.body["sampling_params"];
    let mut said = json!({
        "request_id": "1",
        "choices": [{"index": 0, "logprobs": null, "finish_reason": "length", "token_ids": [5]}],
        "prompt_logprobs": null,
        "prompt_token_id_logprobs": null,
    });
    if let Some(top) = params["prompt_logprobs"].as_u64() {
        said["prompt_logprobs"] = prompt_logprobs(&tokens, top as usize);
    }
    if let Some(lists) = params["prompt_logprob_token_ids"].as_array() {
        let start = params["prompt_logprob_start"].as_u64().expect("a start") as usize;
        assert_eq!(lists.len(), tokens.len() - 1 - start);
        let rows = lists.iter().enumerate().map(|(at, list)| {
            let row = row(&tokens[..=start + at], 1.0);
            let list = list.as_array().expect("a list").iter();
            let score = |id: &Value| match id.as_i64().expect("an id") {
                -1 => f32::NEG_INFINITY,
                id => row[id as usize] as f32,
            };
            list.map(score).collect()
        });
        said["prompt_token_id_logprobs"] = json!(npy(&rows.collect::<Vec<_>>()));
    }
    said
}

pub(crate) fn answer_completions(request: &Request) -> Value {
    assert_eq!(request.path, "/v1/completions");
    let top = request.body["prompt_logprobs"].as_u64().expect("a number");
    json!({
        "id": "cmpl-1",
        "object": "text_completion",
        "choices": [{
            "index": 0,
            "text": " and",
            "logprobs": null,
            "prompt_logprobs": prompt_logprobs(&ids(&request.body["prompt"]), top as usize),
        }],
        "usage": {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8},
    })
}

const TOKENS: [TokenId; 6] = [3, 1, 4, 1, 5, 9];

/// The rows after the fourth token and after each further one.
fn score(
    engine: &impl ScoringEngine,
    top: usize,
    asked: &[Vec<TokenId>],
) -> Result<Vec<ScoredRows>, ScoringError> {
    let sequence = ScoredSequence {
        tokens: &TOKENS,
        committed: 4,
        asked,
        salt: "",
    };
    let scoring = ScoreRequest {
        sequences: &[sequence],
        top,
    };
    engine.score(&scoring, soon())
}

fn generate(
    top: usize,
    asked: &[Vec<TokenId>],
    change: impl Fn(&mut Value) + Send + 'static,
) -> (Result<Vec<ScoredRows>, ScoringError>, Value) {
    let stub = Stub::new(move |_, request| {
        let mut said = answer_generate(request);
        change(&mut said);
        Response::json(&said)
    });
    let rows = score(
        &Vllm::new(
            stub.connection(),
            "served".to_owned(),
            MODEL,
            VllmRoute::Generate,
        ),
        top,
        asked,
    );
    (rows, stub.requests()[0].body.clone())
}

fn completions(
    asked: &[Vec<TokenId>],
    change: impl Fn(&mut Value) + Send + 'static,
) -> (Result<Vec<ScoredRows>, ScoringError>, Option<Value>) {
    let stub = Stub::new(move |_, request| {
        let mut said = answer_completions(request);
        change(&mut said);
        Response::json(&said)
    });
    let engine = Vllm::new(
        stub.connection(),
        "served".to_owned(),
        MODEL,
        VllmRoute::Completions,
    );
    let rows = score(&engine, 5, asked);
    let body = stub.requests().first().map(|request| request.body.clone());
    (rows, body)
}

/// That each of `rows` knows the most likely tokens, the one that follows, and those asked for.
fn assert_rows(rows: &[PartialRow], top: usize, asked: &[Vec<TokenId>]) {
    assert_eq!(rows.len(), 3);
    for (at, found) in rows.iter().enumerate() {
        let row = row(&TOKENS[..4 + at], 1.0);
        for token in likeliest(&row, top).iter().chain(&asked[at]) {
            assert!(found.contains(*token), "row {at}, token {token}");
        }
        if top > 0 {
            let least = likeliest(&row, top)[top - 1];
            assert_eq!(found.ceiling(), row[least as usize]);
        }
        for likely in found.known() {
            assert_eq!(likely.logprob, row[likely.token as usize]);
        }
    }
}

/// The longest list first, last and between; none of a row.
#[test]
fn each_row_has_the_tokens_asked_of_it() {
    let nothing = vec![vec![]; 3];
    let lists = vec![vec![40, 2, 6], vec![7], vec![2, 11]];
    let some = vec![vec![], vec![7, 8], vec![]];
    for asked in [lists, some, nothing] {
        for top in [0, 1, 5] {
            if top == 0 && asked[0].is_empty() {
                continue;
            }
            let rows = generate(top, &asked, |_| {}).0.expect("rows");
            assert_rows(&rows[0].rows, top, &asked);
        }
    }
}

#[test]
fn requests_are_as_the_routes_want_them() {
    let asked = vec![vec![40, 2], vec![7], vec![2, 11]];
    let (_, body) = generate(5, &asked, |_| {});
    let expected = json!({
        "token_ids": [3, 1, 4, 1, 5, 9, 0],
        "sampling_params": {
            "max_tokens": 1,
            "temperature": 0,
            "ignore_eos": true,
            "detokenize": false,
            "prompt_logprobs": 5,
            "prompt_logprob_token_ids": [[40, 2], [7, -1], [2, 11]],
            "prompt_logprob_start": 3,
        },
        "stream": false,
    });
    assert_eq!(body, expected);
    let (rows, body) = completions(&vec![vec![]; 3], |_| {});
    assert_rows(&rows.expect("rows")[0].rows, 5, &vec![vec![]; 3]);
    let expected = json!({
        "model": "served",
        "prompt": [3, 1, 4, 1, 5, 9, 0],
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": 5,
        "stream": false,
    });
    assert_eq!(body, Some(expected));
}

/// With it the V1 runner answers with memory that is not its own. Nor is text asked for by which tokens are told apart.
#[test]
fn the_cache_is_never_forced() {
    let asked = vec![vec![40], vec![7], vec![2]];
    let forced = |body: &Value| {
        let text = body.to_string();
        text.contains("skip_reading_prefix_cache") || text.contains("\"logprobs\"")
    };
    assert!(!forced(&generate(5, &asked, |_| {}).1));
    assert!(!forced(
        &completions(&vec![vec![]; 3], |_| {}).1.expect("a request")
    ));
}

#[test]
fn tokens_that_cannot_be_asked_for_are_refused_before_the_request() {
    let (rows, body) = completions(&[vec![], vec![7], vec![]], |_| {});
    let error = rows.expect_err("tokens asked for").to_string();
    assert!(
        error.contains("does not offer log probabilities of given tokens"),
        "{error}"
    );
    assert_eq!(body, None);
}

#[test]
fn a_model_runner_that_cannot_score_given_tokens_is_told_by_its_refusal() {
    let stub = Stub::new(|_, _| Response {
        status: 400,
        ..Response::bytes("{\"error\": \"prompt_logprob_token_ids requires the V2 model runner\"}")
    });
    let asked = [vec![7]];
    let sequence = ScoredSequence {
        tokens: &TOKENS,
        committed: 6,
        asked: &asked,
        salt: "",
    };
    let scoring = ScoreRequest {
        sequences: &[sequence],
        top: 5,
    };
    let engine = Vllm::new(
        stub.connection(),
        "served".to_owned(),
        MODEL,
        VllmRoute::Generate,
    );
    let error = engine.score(&scoring, soon()).expect_err("a refusal");
    assert!(matches!(error, ScoringError::NotOffered(_)), "{error}");
}

#[test]
fn an_answer_that_is_none_to_what_was_asked_gives_no_row() {
    type Change = fn(&mut Value);
    let of_both: Vec<(&str, Change)> = vec![
        ("no log probabilities", |rows| *rows = Value::Null),
        ("has 6 rows, expected 7", |rows| {
            rows.as_array_mut().expect("rows").pop();
        }),
        ("a row where null was expected", |rows| {
            rows[0] = rows[1].clone();
        }),
        ("null instead of a row", |rows| rows[5] = Value::Null),
        ("null instead of a log probability", |rows| {
            let row = rows[6].as_object_mut().expect("a row");
            row["0"]["logprob"] = Value::Null;
        }),
        ("most likely tokens, expected 5", |rows| {
            let row = rows[4].as_object_mut().expect("a row");
            let keys: Vec<String> = row.keys().take(2).cloned().collect();
            for key in keys {
                row.remove(&key);
            }
        }),
        ("neither likely nor the one that follows", |rows| {
            let row = rows[6].as_object_mut().expect("a row");
            let moved = row.remove("0").expect("the one that follows");
            let other = (0..48).map(|token| token.to_string());
            let free = other
                .clone()
                .find(|token| token != "0" && !row.contains_key(token));
            row.insert(free.expect("a token"), moved);
        }),
        ("outside of a vocabulary of 48", |rows| {
            let row = rows[5].as_object_mut().expect("a row");
            let likely = row.keys().find(|token| *token != "9").cloned();
            let moved = row.remove(&likely.expect("an entry")).expect("an entry");
            row.insert("48".to_owned(), moved);
        }),
        ("malformed", |rows| {
            rows[5] = json!({"a": {"logprob": -1.0}});
        }),
        ("malformed", |rows| rows[5] = json!([])),
    ];
    let asked = vec![vec![40], vec![7], vec![2]];
    for (expected, change) in of_both {
        let generated = generate(5, &asked, move |said| change(&mut said["prompt_logprobs"]));
        let completed = completions(&vec![vec![]; 3], move |said| {
            change(&mut said["choices"][0]["prompt_logprobs"]);
        });
        for rows in [generated.0, completed.0] {
            let error = rows.expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}: {expected}");
        }
    }
    let changes: Vec<(&str, Change)> = vec![
        ("no log probabilities of the tokens asked for", |said| {
            said["prompt_token_id_logprobs"] = Value::Null;
        }),
        ("no base64", |said| {
            said["prompt_token_id_logprobs"] = json!("~");
        }),
        ("another shape", |said| {
            said["prompt_token_id_logprobs"] = json!(npy(&[vec![-1.0; 2], vec![-1.0; 2]]));
        }),
        ("row 0: row holds NaN", |said| {
            let rows = vec![vec![f32::NAN]; 3];
            said["prompt_token_id_logprobs"] = json!(npy(&rows));
        }),
        ("out of the most likely ones", |said| {
            said["prompt_token_id_logprobs"] = json!(npy(&vec![vec![-0.01]; 3]));
        }),
    ];
    for (expected, change) in changes {
        let error = generate(1, &asked, change)
            .0
            .expect_err(expected)
            .to_string();
        let contradicts =
            expected == "out of the most likely ones" && error.contains("two log probabilities");
        assert!(
            error.contains(expected) || contradicts,
            "{error}: {expected}"
        );
    }
}
