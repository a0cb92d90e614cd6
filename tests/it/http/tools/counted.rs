//! Answers that end in a call, in the metrics.

use serde_json::json;

use super::{serving, tools};

#[tokio::test]
async fn an_answer_that_ends_in_a_call_is_no_error() {
    let serving = serving(|_| {}).await;
    let body = json!({
        "messages": [{ "role": "user", "content": "Weather?" }], "tools": tools(), "tool_choice": "required",
        "parallel_tool_calls": false, "max_tokens": 80, "seed": 3,
    });
    let reply = serving.post("/v1/chat/completions", &body).await.json();
    assert_eq!(
        reply["choices"][0]["finish_reason"], "tool_calls",
        "{reply}"
    );
    let scrape = serving.coordinator.scrape();
    for (metric, label) in [
        ("outrider_requests_total", ("outcome", "tool_calls")),
        ("outrider_tenant_requests_total", ("outcome", "tool_calls")),
        (
            "gen_ai_server_request_duration_seconds_count",
            ("error_type", ""),
        ),
        (
            "gen_ai_server_time_to_first_token_seconds_count",
            ("gen_ai_operation_name", "chat"),
        ),
        (
            "gen_ai_server_time_per_output_token_seconds_count",
            ("gen_ai_operation_name", "chat"),
        ),
    ] {
        assert_eq!(scrape.sum(metric, &[label]), 1.0, "{metric}");
    }
}
