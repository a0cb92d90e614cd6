//! What a request is about stands in no span, unless that is asked for.

use ops::trace::names;

use super::collector::Seen;
use super::watched::Watched;
use crate::client::{With, generate, request, try_generate};

/// Words that stand in the prompt and nowhere else.
const PROMPT: &str = "Once upon a time there was a Zanzibar";

#[tokio::test]
async fn text_stands_in_the_span_of_the_request_if_asked_for_and_nowhere_else() {
    for capture_text in [false, true] {
        let services = Watched::start(|telemetry| telemetry.capture_text = capture_text).await;
        let requested = request(PROMPT, 40).temperature(0.0).ignoring_eos();
        let answer = generate(&services.coordinator, requested).await;
        let words: Vec<_> = answer.text.split_whitespace().take(4).collect();
        assert_eq!(words.len(), 4, "{:?}", answer.text);
        // What is refused is not quoted either.
        let refused = try_generate(&services.coordinator, request(PROMPT, 0)).await;
        assert!(refused.is_err());
        let spans = services.spans().await;
        let root = spans.one("chat default");
        let is_silent = |seen: &&Seen| !capture_text || seen.span.span_id != root.span.span_id;
        let texts: String = spans.0.iter().filter(is_silent).map(Seen::texts).collect();
        let is_told = texts.contains(&words.join(" ")) || texts.contains("Zanzibar");
        assert!(!texts.is_empty() && !is_told, "{texts}");
        if capture_text {
            let read = |key| -> serde_json::Value {
                serde_json::from_str(&root.text(key).expect("text")).expect("JSON")
            };
            let input = read(names::INPUT_MESSAGES);
            assert_eq!(input[0]["role"], "user");
            assert_eq!(input[0]["parts"][0]["content"], PROMPT);
            let output = read(names::OUTPUT_MESSAGES);
            assert_eq!(output[0]["parts"][0]["content"], answer.text);
            assert_eq!(output[0]["finish_reason"], "length");
        }
    }
}
