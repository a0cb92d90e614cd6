//! What is wrong with tools, or cannot be had as far as it is asked for.

use serde_json::{Value, json};

use super::serving;

#[tokio::test]
async fn what_is_wrong_with_tools_is_named() {
    let serving = serving(|_| {}).await;
    let tool = |name: &str, parameters: Value| json!({ "type": "function", "function": { "name": name, "parameters": parameters, "strict": true } });
    let free = || json!({ "type": "object" });
    let many: Vec<Value> = (0..129).map(|at| tool(&format!("t{at}"), free())).collect();
    let user = json!([{ "role": "user", "content": "x" }]);
    for (more, param, words) in [
        (
            json!({ "tools": [tool("a\"b", free())] }),
            "tools",
            "'a\"b' is no name",
        ),
        (
            json!({ "tools": [tool("a", free()), tool("a", free())] }),
            "tools",
            "'a' stands twice",
        ),
        (
            json!({ "tools": many }),
            "tools",
            "129 tools, expected at most 128",
        ),
        (
            json!({ "tools": [tool("a", json!({ "type": "string" }))] }),
            "tools",
            "another type than object",
        ),
        (
            json!({ "tools": [tool("a", json!({ "not": {} }))] }),
            "tools",
            "'a' is strict",
        ),
        (
            json!({ "tools": [tool("a", free())], "tool_choice": "required", "ignore_eos": true }),
            "ignore_eos",
            "grammar",
        ),
        (
            json!({ "tools": [tool("a", free())], "tool_choice": { "type": "function", "function": { "name": "b" } } }),
            "tool_choice",
            "'b' is none of the tools",
        ),
        (
            json!({ "messages": [{ "role": "tool", "tool_call_id": "7", "content": "x" }] }),
            "messages",
            "turn 0 answers the call '7'",
        ),
    ] {
        let mut body = json!({ "messages": user, "max_tokens": 4 });
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let reply = serving.post("/v1/chat/completions", &body).await;
        let message = reply.refused(400, Some(param));
        assert!(message.contains(words), "{message}");
    }
    // What is not strict, or not necessary, is had as far as it goes.
    let loose =
        json!({ "type": "function", "function": { "name": "a", "parameters": { "not": {} } } });
    let body =
        json!({ "messages": user, "tools": [loose], "tool_choice": "required", "max_tokens": 40 });
    let reply = serving.post("/v1/chat/completions", &body).await.json();
    let warnings = reply["warnings"].to_string();
    assert!(
        warnings.contains("the arguments of 'a' may be any object"),
        "{reply}"
    );
    let body = json!({ "messages": user, "tools": [loose], "max_tokens": 4, "ignore_eos": true });
    let reply = serving.post("/v1/chat/completions", &body).await.json();
    assert!(
        reply["warnings"].to_string().contains("ignore_eos"),
        "{reply}"
    );
}
