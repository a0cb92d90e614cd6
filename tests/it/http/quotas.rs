//! What a token may use in a minute, and who used how much.

use serde_json::json;

use super::{demanding, serving_in};

const FIRST: &str = "0123456789abcdef0123456789abcdef";
const SECOND: &str = "fedcba9876543210fedcba9876543210";
const THIRD: &str = "00112233445566778899aabbccddeeff";

#[tokio::test]
async fn a_token_that_used_up_its_minute_is_told_when_to_come_back() {
    let (_file, process) = demanding(&format!(
        "handbook {FIRST} rpm=1\nsearch {SECOND} tpm=4\n{THIRD}"
    ));
    let serving = serving_in(process, |_| {}).await;
    let ask = async |token: &str, max_tokens: u32| {
        let body =
            json!({ "prompt": [7], "max_tokens": max_tokens, "ignore_eos": true }).to_string();
        let headers =
            format!("content-type: application/json\r\nauthorization: Bearer {token}\r\n");
        serving.post_with("/v1/completions", &headers, &body).await
    };
    for (token, max_tokens, limit, wait) in [
        (FIRST, 2, "rpm=1 in auth.client_tokens_file", 30..=60),
        (SECOND, 8, "tpm=4 in auth.client_tokens_file", 30..=120),
    ] {
        // What is under way goes on beyond the limit.
        let first = ask(token, max_tokens).await;
        assert_eq!(first.status, 200, "{first:?}");
        assert_eq!(first.json()["usage"]["completion_tokens"], max_tokens);
        let second = ask(token, max_tokens).await;
        let problem = second.refused(429, None);
        assert!(problem.contains(limit), "{problem}");
        let after = second
            .headers
            .lines()
            .find_map(|line| line.strip_prefix("retry-after: "));
        let after: u64 = after.expect("a time").parse().expect("seconds");
        assert!(wait.contains(&after), "{after}");
    }
    for _ in 0..2 {
        assert_eq!(ask(THIRD, 3).await.status, 200, "it has no limits");
    }

    let scrape = serving.coordinator.scrape();
    for (tenant, length, refused, prompt, output) in [
        ("handbook", 1.0, 1.0, 1.0, 2.0),
        ("search", 1.0, 1.0, 1.0, 8.0),
        ("unnamed", 2.0, 0.0, 2.0, 6.0),
    ] {
        let requests = |outcome| {
            scrape.sum(
                "outrider_tenant_requests_total",
                &[("tenant", tenant), ("outcome", outcome)],
            )
        };
        let tokens = |kind| {
            scrape.sum(
                "outrider_tenant_tokens_total",
                &[("tenant", tenant), ("kind", kind)],
            )
        };
        assert_eq!(
            (requests("length"), requests("refused")),
            (length, refused),
            "{tenant}"
        );
        assert_eq!(
            (tokens("prompt"), tokens("output")),
            (prompt, output),
            "{tenant}"
        );
    }
}
