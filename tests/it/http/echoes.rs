//! Prompts that are echoed before their outputs.

use serde_json::{Value, json};

use super::{Serving, serving};

/// The text of the first choice of `answer`, or of the events of a stream.
fn text(choices: &[Value]) -> String {
    let texts = choices
        .iter()
        .filter_map(|answer| answer["choices"][0]["text"].as_str());
    texts.collect()
}

/// The ids that an answer of one choice tells.
fn ids(answer: &Value) -> Vec<Value> {
    let ids = answer["choices"][0]["token_ids"].as_array();
    ids.expect("ids").clone()
}

async fn detokenized(serving: &Serving, tokens: &[Value]) -> String {
    let text = serving
        .post("/detokenize", &json!({ "tokens": tokens }))
        .await;
    let text = text.json();
    text["prompt"].as_str().expect("text").to_owned()
}

/// No character of the prompt is told apart from the tokens that it goes on in.
#[tokio::test]
async fn an_echoed_prompt_and_its_output_are_the_text_of_all_their_tokens() {
    let serving = serving(|_| {}).await;
    let body = json!({ "prompt": "Once \u{D55C}\u{1F7DF}", "add_special_tokens": false });
    let tokens = serving.post("/tokenize", &body).await.json();
    let tokens = tokens["tokens"].as_array().expect("tokens").clone();
    let mut inside = 0;
    for end in tokens.len() - 6..=tokens.len() {
        let prompt = &tokens[..end];
        inside += usize::from(detokenized(&serving, prompt).await.ends_with('\u{FFFD}'));
        for logprobs in [Value::Null, json!(1)] {
            let mut body = json!({
                "prompt": prompt, "max_tokens": 3, "echo": true, "logprobs": logprobs, "return_token_ids": true,
            });
            let whole = serving.completion(body.clone()).await.json();
            let all = [prompt, &ids(&whole)].concat();
            let expected = detokenized(&serving, &all).await;
            assert_eq!(text(&[whole]), expected, "{end}, {logprobs}");
            body["stream"] = json!(true);
            let events = serving.completion(body).await.events();
            assert_eq!(text(&events), expected, "{end}, {logprobs}, as events");
        }
    }
    assert!(inside > 2, "{inside} prompts end inside a character");
    // What nothing completes is told at the end.
    let prompt = &tokens[..tokens.len() - 1];
    let body = json!({ "prompt": prompt, "max_tokens": 0, "echo": true, "logprobs": 0 });
    let none = serving.completion(body).await.json();
    assert_eq!(text(&[none]), detokenized(&serving, prompt).await);
}
