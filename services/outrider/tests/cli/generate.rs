//! Generating: what is printed, and what is refused.

use serde_json::Value;

#[cfg(unix)]
use super::pty::Terminal;
use super::{json, outrider, refusals, run, says, shown, succeeds, words};

#[test]
fn generate_prints_one_json_object_with_everything_in_it() {
    let requested = |more: &str| {
        let requested = words("--prompt 'Once upon a time' --max-tokens 8 --seed 9 --ignore-eos");
        json(&[requested, words(more)].concat())
    };
    let answer = requested("--draft-len 3");
    let text = serde_json::to_string_pretty(&answer).expect("JSON");
    shown("generate-json", &text);
    assert_eq!(
        requested("--method target-only")["token_ids"],
        answer["token_ids"]
    );
}

#[test]
fn generate_streams_text_and_ends_with_a_summary() {
    let line =
        "generate --prompt 'Once upon a time' --max-tokens 20 --seed 1 --show-rounds --draft-len 4";
    let (stdout, stderr) = succeeds(&mut outrider(&words(line)));
    assert!(
        !stdout.trim().is_empty() && !stdout.contains('\u{1b}'),
        "no colours in a pipe"
    );
    says(&stderr, "round   1 | method coupled, seed 1");
    assert!(!stdout.starts_with("Once upon"), "the prompt in a pipe");
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_the_prompt_dimmed_before_what_goes_on_from_it() {
    let line = "generate 'Once upon a time' --max-tokens 8 --seed 1";
    let mut terminal = Terminal::run(outrider(&words(line)));
    terminal.until("a dimmed prompt", |screen| {
        let is_dimmed = |column| screen.cell(0, column).is_some_and(vt100::Cell::dim);
        screen.contents().starts_with("Once upon a time") && is_dimmed(0) && is_dimmed(15)
    });
    let (status, screen) = terminal.ends();
    assert!(status.success());
    says(&screen, "8 tokens | seed 1");
    // The answer to a question does not go on from it.
    let line = "generate --chat 'Once upon a time' --max-tokens 8 --seed 1";
    let (_, screen) = Terminal::run(outrider(&words(line))).ends();
    assert!(!screen.starts_with("Once upon a time"), "{screen}");
}

/// `outrider score` finds the same log probabilities of the output as came with it.
#[test]
fn log_probabilities_are_those_that_the_target_model_is_scored_by() {
    let line = "--prompt '' --max-tokens 24 --ignore-eos --seed 5 --draft-len 4 --logprobs 2";
    let answer = json(&words(line));
    let tokens = answer["token_ids"].as_array().expect("an array");
    // The empty prompt is one token.
    let all: Vec<_> = std::iter::once("1".to_owned())
        .chain(tokens.iter().map(Value::to_string))
        .collect();
    let (scored, _) =
        succeeds(outrider(&["score", "--json", "--top", "2", "--token-ids"]).arg(all.join(",")));
    let scored: Value = serde_json::from_str(&scored).expect("an object");
    let number = |value: &Value| value.as_f64().expect("a number") as f32;
    for at in 0..24 {
        let found = &answer["logprobs"][at];
        let [before, own] = [at, at + 1].map(|at| &scored["positions"][at]);
        assert_eq!(number(&found["logprob"]), number(&own["logprob"]), "{at}");
        for rank in 0..2 {
            let [found, expected] = [found, before].map(|of| &of["top"][rank]);
            assert_eq!(found["token_id"], expected["token_id"], "{at}");
            assert_eq!(
                number(&found["logprob"]),
                number(&expected["logprob"]),
                "{at}"
            );
        }
    }
    assert!(json(&words("--prompt '' --max-tokens 2"))["logprobs"].is_null());
}

/// The built-in tokenizer begins every text with a token: that is the prompt.
#[test]
fn an_empty_prompt_is_the_start_token_alone() {
    let answer = json(&words("--prompt '' --max-tokens 8 --ignore-eos"));
    assert_eq!(answer["usage"]["prompt_tokens"], 1);
    assert_eq!(answer["usage"]["completion_tokens"], 8);
}

#[test]
fn bad_requests_name_the_field_and_the_limit() {
    // The coordinator's words, and those of the flags and of connections.
    refusals(
        "refused-requests",
        &[
            "generate --prompt x --temperature -1",
            "generate --prompt x --draft-len 9 --tree comb:8",
            "generate --prompt x --method nonsense",
            "generate --prompt x --regex ''",
            "generate --prompt x --json-schema /dev/null",
            "generate --prompt x --draft-len 4 --draft-cap 9",
            "generate --prompt x --coordinator http://127.0.0.1:9",
            "generate --prompt x --coordinator nonsense",
            "generate --prompt-file no/such/file",
        ],
    );
}

#[test]
fn an_answer_is_checked_against_another_method() {
    let check = |method: &str| {
        let line =
            "generate --prompt 'Once upon a time' --max-tokens 32 --seed 4 --json --draft-len 3";
        run(&[&words(line)[..], &["--check-against", method]].concat())
    };
    let same = check("target-only");
    let said = String::from_utf8_lossy(&same.stderr);
    assert!(same.status.success(), "{said}");
    let answer: Value = serde_json::from_slice(&same.stdout).expect("one JSON object");
    let tokens = answer["token_ids"].as_array().expect("an array").len();
    let expected = format!("target-only generates the same {tokens} tokens");
    assert!(said.contains(&expected), "{said}");

    let other = check("draft-only");
    let said = String::from_utf8_lossy(&other.stderr);
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(said.contains("draft-only generates other tokens"), "{said}");
    // What was generated is printed all the same, and the failure after it.
    let printed = serde_json::Deserializer::from_slice(&other.stdout).into_iter::<Value>();
    let printed: Vec<Value> = printed.collect::<Result<_, _>>().expect("JSON objects");
    let [answer, failure] = &printed[..] else {
        panic!("{printed:?}");
    };
    assert_eq!(answer["token_ids"].as_array().map(Vec::len), Some(tokens));
    assert!(failure["error"]["message"].is_string(), "{failure}");
}
