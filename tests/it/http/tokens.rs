//! `/tokenize` and `/detokenize`: bounds.

use coordinator::limits::{MAX_BYTES_PER_TOKEN, MAX_REQUEST_BYTES, MAX_TOKENIZED};
use serde_json::json;

use super::serving;

/// Clients ask how much too long a text is.
#[tokio::test]
async fn a_text_longer_than_the_context_is_tokenised_and_one_that_is_far_longer_refused() {
    let serving = serving(|_| {}).await;
    let tokenize = async |text: String| serving.post("/tokenize", &json!({ "prompt": text })).await;
    let long = tokenize("a b ".repeat(2000)).await.json();
    let context = long["max_model_len"].as_u64().expect("a number");
    let count = long["count"].as_u64().expect("a number");
    assert!(
        count > 2 * context,
        "{count} tokens, a context of {context}"
    );
    assert_eq!(
        long["tokens"].as_array().map(Vec::len),
        Some(count as usize)
    );
    let most = context as usize * MAX_BYTES_PER_TOKEN;
    // One token a byte.
    let many = tokenize("1".repeat(MAX_TOKENIZED)).await;
    let reported = many.refused(400, Some("prompt"));
    assert!(
        reported.contains(&format!("expected at most {MAX_TOKENIZED}")),
        "{reported}"
    );
    let far = tokenize("x".repeat(most + 1))
        .await
        .refused(400, Some("prompt"));
    assert!(far.contains("which cannot fit"), "{far}");
}

#[tokio::test]
async fn ids_that_no_token_has_become_no_text() {
    let serving = serving(|_| {}).await;
    for tokens in [[300, 5000], [300, u64::from(u32::MAX)]] {
        let detokenized = serving
            .post("/detokenize", &json!({ "tokens": tokens }))
            .await;
        let reported = detokenized.refused(400, Some("tokens"));
        assert!(
            reported.contains(&format!("token id {}", tokens[1])),
            "{reported}"
        );
    }
}

#[tokio::test]
async fn tokens_without_number_become_no_text() {
    let serving = serving(|_| {}).await;
    let detokenize = async |tokens: Vec<u64>| {
        serving
            .post("/detokenize", &json!({ "tokens": tokens }))
            .await
    };
    let text = detokenize(vec![300; MAX_TOKENIZED]).await.json();
    let text = text["prompt"].as_str().expect("a text").len();
    assert!((MAX_TOKENIZED / 4..MAX_REQUEST_BYTES).contains(&text));
    let many = detokenize(vec![300; MAX_TOKENIZED + 1]).await;
    let reported = many.refused(400, Some("tokens"));
    assert!(
        reported.contains("131073") && reported.contains("131072"),
        "{reported}"
    );
}
