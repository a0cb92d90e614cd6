//! What a request is about stands in no span, unless that is asked for.

use server::trace::names;

use super::watched::Watched;
use crate::client::{Answer, With, generate, request};

/// Words that stand in the prompt and nowhere else.
const PROMPT: &str = "Once upon a time there was a Zanzibar";

/// An answer, and the spans of its request as text.
async fn traced(capture_text: bool) -> (Answer, String, super::collector::Spans) {
    let services = Watched::start(|telemetry| telemetry.capture_text = capture_text).await;
    let asked = request(PROMPT, 40).temperature(0.0).ignoring_eos();
    let answer = generate(&services.coordinator, asked).await;
    // What is refused is not quoted either.
    let refused = crate::client::try_generate(&services.coordinator, request(PROMPT, 0)).await;
    assert!(refused.is_err());
    let spans = services.spans().await;
    let texts: String = spans.0.iter().map(super::collector::Seen::texts).collect();
    (answer, texts, spans)
}

/// A few words of an answer.
fn words(answer: &Answer) -> String {
    let words: Vec<_> = answer.text.split_whitespace().take(4).collect();
    assert_eq!(words.len(), 4, "{:?}", answer.text);
    words.join(" ")
}

#[tokio::test]
async fn no_span_holds_text() {
    let (answer, texts, _) = traced(false).await;
    assert!(texts.contains("chat default"));
    assert!(
        !texts.contains("Zanzibar") && !texts.contains(&words(&answer)),
        "{texts}"
    );
}

#[tokio::test]
async fn text_that_is_asked_for_stands_in_the_span_of_the_request() {
    let (answer, _, spans) = traced(true).await;
    let root = spans.one("chat default");
    let read = |key| -> serde_json::Value {
        serde_json::from_str(&root.text(key).expect("text")).expect("JSON")
    };
    let input = read(names::INPUT_MESSAGES);
    assert_eq!(input[0]["role"], "user");
    assert_eq!(input[0]["parts"][0]["content"], PROMPT);
    let output = read(names::OUTPUT_MESSAGES);
    assert_eq!(output[0]["parts"][0]["content"], answer.text);
    assert_eq!(output[0]["finish_reason"], "length");
    let others = spans
        .0
        .iter()
        .filter(|seen| seen.span.span_id != root.span.span_id);
    let others: String = others.map(super::collector::Seen::texts).collect();
    assert!(!others.contains(&words(&answer)));
}
