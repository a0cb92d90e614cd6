//! SGLang's `/generate`.

use engines::{ScoreRequest, ScoredRows, ScoredSequence, ScoringEngine, ScoringError, Sglang};
use serde_json::{Value, json};
use speculation::TokenId;
use speculation::certificate::PartialRow;

use crate::model::{MODEL, VOCAB, likeliest, row};
use crate::stub::{Request, Response, Stub, soon};

/// Rows as SGLang gives them: `[log probability, token, null]` each.
fn entries(row: &[f64], tokens: &[TokenId]) -> Value {
    let entry = |&token: &TokenId| json!([row[token as usize], token, null]);
    tokens.iter().map(entry).collect()
}

fn ids(value: &Value) -> Vec<TokenId> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    let id = |id: &Value| id.as_u64().expect("an id") as TokenId;
    list.iter().map(id).collect()
}

/// Returns what SGLang answers for one sequence: rows of the input from `logprob_start_len` on, the first of them null,
/// and the row after the last token apart, divided by the temperature.
fn answer_one(body: &Value) -> Value {
    let tokens = ids(&body["input_ids"]);
    let start = body["logprob_start_len"].as_i64().expect("a start");
    let top = body["top_logprobs_num"].as_u64().expect("a number") as usize;
    let asked = ids(&body["token_ids_logprob"]);
    let temperature = body["sampling_params"]["temperature"].as_f64();
    let temperature = temperature.expect("a temperature");
    let last = row(&tokens, if temperature == 0.0 { 1.0 } else { temperature });
    let (mut input_top, mut input_ids) = (vec![Value::Null], vec![Value::Null]);
    for end in (start as usize + 1)..tokens.len() {
        let row = row(&tokens[..end], 1.0);
        input_top.push(entries(&row, &likeliest(&row, top)));
        input_ids.push(entries(&row, &asked));
    }
    let mut meta = json!({
        "id": "1",
        "prompt_tokens": tokens.len(),
        "cached_tokens": start,
        "input_top_logprobs": input_top,
        "output_top_logprobs": [entries(&last, &likeliest(&last, top))],
    });
    if !asked.is_empty() {
        meta["input_token_ids_logprobs"] = json!(input_ids);
        meta["output_token_ids_logprobs"] = json!([entries(&last, &asked)]);
    }
    json!({"text": "", "output_ids": likeliest(&last, 1), "meta_info": meta})
}

/// Returns what SGLang answers: for several sequences each field is a list.
pub(crate) fn answer(request: &Request) -> Value {
    assert_eq!(request.path, "/generate");
    let body = &request.body;
    if !body["input_ids"][0].is_array() {
        return answer_one(body);
    }
    let count = body["input_ids"].as_array().expect("a list").len();
    let one = |at: usize| {
        let mut one = json!({});
        for (field, values) in body.as_object().expect("an object") {
            one[field] = values[at].clone();
            assert!(!one[field].is_null(), "{field}");
        }
        answer_one(&one)
    };
    (0..count).map(one).collect()
}

const TOKENS: [TokenId; 6] = [3, 1, 4, 1, 5, 9];

fn asked() -> Vec<Vec<TokenId>> {
    vec![vec![40, 2], vec![7], vec![2, 11]]
}

/// Scores two draft tokens after four committed ones, of a server that changes its answers.
fn score_changed(
    change: impl Fn(&mut Value) + Send + 'static,
) -> Result<Vec<ScoredRows>, ScoringError> {
    let stub = Stub::new(move |_, request| {
        let mut said = answer(request);
        change(&mut said);
        Response::json(&said)
    });
    let asked = asked();
    let sequence = ScoredSequence {
        tokens: &TOKENS,
        committed: 4,
        asked: &asked,
        salt: "",
    };
    let scoring = ScoreRequest {
        sequences: &[sequence],
        top: 5,
    };
    Sglang::new(stub.connection(), MODEL, true).score(&scoring, soon())
}

/// That `found` knows the most likely tokens after `prefix`, and those asked for, and no others.
fn assert_row(found: &PartialRow, prefix: &[TokenId], top: usize, asked: &[TokenId]) {
    let row = row(prefix, 1.0);
    let mut expected = likeliest(&row, top);
    expected.extend(asked);
    expected.sort_unstable();
    expected.dedup();
    let mut known: Vec<TokenId> = found.known().iter().map(|likely| likely.token).collect();
    known.sort_unstable();
    assert_eq!(known, expected);
    for likely in found.known() {
        assert_eq!(likely.logprob, row[likely.token as usize]);
    }
}

#[test]
fn rows_are_those_after_the_last_committed_token_and_after_each_draft() {
    let rows = score_changed(|_| {}).expect("rows");
    assert_eq!((rows.len(), rows[0].rows.len()), (1, 3));
    for (at, found) in rows[0].rows.iter().enumerate() {
        assert_row(found, &TOKENS[..4 + at], 5, &[2, 7, 11, 40]);
    }
}

#[test]
fn the_request_is_as_the_route_wants_it() {
    let stub = Stub::new(|_, request| Response::json(&answer(request)));
    let asked = asked();
    let sequence = ScoredSequence {
        tokens: &TOKENS,
        committed: 4,
        asked: &asked,
        salt: "",
    };
    let engine = Sglang::new(stub.connection(), MODEL, true);
    let scoring = ScoreRequest {
        sequences: &[sequence],
        top: 5,
    };
    engine.score(&scoring, soon()).expect("rows");
    let expected = json!({
        "input_ids": TOKENS,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0, "ignore_eos": true},
        "return_logprob": true,
        "logprob_start_len": 3,
        "top_logprobs_num": 5,
        "token_ids_logprob": [2, 7, 11, 40],
    });
    assert_eq!(stub.requests()[0].body, expected);
    // Without draft tokens there is one row, and nothing need be asked for.
    let sequence = ScoredSequence {
        committed: 6,
        asked: &[vec![]],
        ..sequence
    };
    let scoring = ScoreRequest {
        sequences: &[sequence],
        top: 100,
    };
    let rows = engine.score(&scoring, soon()).expect("rows");
    assert_eq!(rows[0].rows.len(), 1);
    assert!(rows[0].rows[0].is_whole());
    assert_eq!(stub.requests()[1].body["top_logprobs_num"], VOCAB);
}

#[test]
fn several_sequences_are_one_request() {
    let stub = Stub::new(|_, request| Response::json(&answer(request)));
    let asked = asked();
    let nothing = [vec![], vec![]];
    let sequences = [
        ScoredSequence {
            tokens: &TOKENS,
            committed: 4,
            asked: &asked,
            salt: "",
        },
        ScoredSequence {
            tokens: &[8, 8],
            committed: 1,
            asked: &nothing,
            salt: "",
        },
    ];
    let scoring = ScoreRequest {
        sequences: &sequences,
        top: 3,
    };
    let engine = Sglang::new(stub.connection(), MODEL, true);
    let rows = engine.score(&scoring, soon()).expect("rows");
    assert_eq!(stub.requests().len(), 1);
    assert_row(&rows[0].rows[2], &TOKENS, 3, &[2, 7, 11, 40]);
    assert_row(&rows[1].rows[0], &[8], 3, &[0]);
    assert_row(&rows[1].rows[1], &[8, 8], 3, &[0]);
}

/// The temperature divides the last row and no other, so anything but 0 would be seen here.
#[test]
fn the_last_row_is_not_divided_by_a_temperature() {
    let rows = score_changed(|_| {}).expect("rows");
    assert_row(&rows[0].rows[2], &TOKENS, 5, &[2, 7, 11, 40]);
}

#[test]
fn an_answer_that_is_none_to_what_was_asked_gives_no_row() {
    type Change = fn(&mut Value);
    let changes: Vec<(&str, Change)> = vec![
        ("no log probabilities", |said| {
            said["meta_info"]["input_top_logprobs"] = Value::Null;
        }),
        ("no log probabilities", |said| {
            let meta = said["meta_info"].as_object_mut().expect("an object");
            meta.remove("output_token_ids_logprobs");
        }),
        ("2 rows of its input, expected 3", |said| {
            pop(&mut said["meta_info"]["input_top_logprobs"]);
        }),
        ("4 rows of its input, expected 3", |said| {
            push_copy(&mut said["meta_info"]["input_token_ids_logprobs"]);
        }),
        ("2 rows of its output, expected 1", |said| {
            push_copy(&mut said["meta_info"]["output_top_logprobs"]);
        }),
        ("a row where null was expected", |said| {
            said["meta_info"]["input_top_logprobs"][0] = json!([[-1.0, 1, null]]);
        }),
        ("null instead of a row", |said| {
            said["meta_info"]["input_top_logprobs"][2] = Value::Null;
        }),
        ("null instead of a log probability", |said| {
            said["meta_info"]["input_top_logprobs"][2][1][0] = Value::Null;
        }),
        ("row 1: row holds 4 most likely", |said| {
            pop(&mut said["meta_info"]["input_top_logprobs"][2]);
        }),
        ("row 2: row holds 6 most likely", |said| {
            push_copy(&mut said["meta_info"]["output_top_logprobs"][0]);
        }),
        ("after a less likely one", |said| {
            let row = said["meta_info"]["input_top_logprobs"][1].as_array_mut();
            row.expect("a row").swap(0, 3);
        }),
        ("outside of a vocabulary of 48", |said| {
            said["meta_info"]["output_top_logprobs"][0][4][1] = json!(48);
        }),
        ("expected at most 0", |said| {
            said["meta_info"]["output_top_logprobs"][0][0][0] = json!(0.5);
        }),
        ("probabilities of", |said| {
            for at in 0..5 {
                said["meta_info"]["output_top_logprobs"][0][at][0] = json!(-0.1);
            }
        }),
        ("has 3 tokens that were asked for, expected 4", |said| {
            pop(&mut said["meta_info"]["input_token_ids_logprobs"][1]);
        }),
        ("other tokens than those asked for", |said| {
            let row = said["meta_info"]["input_token_ids_logprobs"][1].as_array_mut();
            row.expect("a row").swap(0, 3);
        }),
        ("5 prompt tokens, expected 6", |said| {
            said["meta_info"]["prompt_tokens"] = json!(5);
        }),
        ("it has another shape", |said| {
            said["meta_info"]["input_top_logprobs"][1][0] = json!([-1.0, 1]);
        }),
        ("it has another shape", |said| {
            said["meta_info"]["output_top_logprobs"][0][0][1] = json!(-1);
        }),
        ("it has another shape", |said| *said = json!([said.clone()])),
    ];
    for (expected, change) in changes {
        let error = score_changed(change).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}: {expected}");
    }
}

#[test]
fn a_list_of_answers_is_one_to_each_sequence() {
    let stub = Stub::new(|_, request| {
        let mut said = answer(request);
        pop(&mut said);
        Response::json(&said)
    });
    let nothing = [vec![]];
    let sequence = ScoredSequence {
        tokens: &[8],
        committed: 1,
        asked: &nothing,
        salt: "",
    };
    let scoring = ScoreRequest {
        sequences: &[sequence, sequence],
        top: 3,
    };
    let error = Sglang::new(stub.connection(), MODEL, true).score(&scoring, soon());
    let error = error.expect_err("one answer").to_string();
    assert!(error.contains("1 sequences, expected 2"), "{error}");
}

fn pop(list: &mut Value) {
    list.as_array_mut().expect("a list").pop();
}

fn push_copy(list: &mut Value) {
    let list = list.as_array_mut().expect("a list");
    list.push(list[list.len() - 1].clone());
}
