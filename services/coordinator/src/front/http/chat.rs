//! `/v1/chat/completions`: the next turn of a conversation.

use serde_json::{Value, json};
use wire::bounds::MAX_MESSAGES;
use wire::json as wire_json;
use wire::status::BadField;
use wire::{grammar, v1};

use super::answer::AnswerLayout;
use super::fields::{JsonFields, list};
use super::output::{Said, WholeOutput};
use super::state::ParsedRequest;
use super::structured::{self, RESPONSE_FORMAT};
use super::{logprobs, messages, options, tools};

/// Reads a request's body.
pub(super) fn read(body: &[u8]) -> Result<ParsedRequest, BadField> {
    let mut fields = JsonFields::of_body(body)?;
    // The newer name of `max_tokens`.
    let newer = fields.take("max_completion_tokens")?;
    let (mut request, delivery) = options::read(&mut fields)?;
    let format = structured::format(&mut fields, RESPONSE_FORMAT, RESPONSE_FORMAT)?;
    let grammar = structured::read(&mut fields, format, &mut request)?;
    let mut names = vec![("prompt", "messages"), (grammar::FIELD, grammar)];
    names.extend(newer.map(|_| ("max_tokens", "max_completion_tokens")));
    request.max_tokens = newer.or(request.max_tokens);
    request.logprobs = fields.take("logprobs")?.unwrap_or_default();
    request.top_logprobs = fields.take("top_logprobs")?.unwrap_or_default();
    let warnings = tools::read(&mut fields, &mut request)?;
    names.extend(tools::NAMES);
    request.template_arguments = template_arguments(&mut fields)?;
    let messages = fields.take_by("messages", |json| list(json, MAX_MESSAGES))?;
    let messages = messages.unwrap_or_default();
    request.messages = messages::read("messages", &messages, &["text"])?;
    for (name, neutral) in [
        ("modalities", vec![json!(["text"])]),
        ("verbosity", vec![json!("medium")]),
        ("echo", vec![json!(false)]),
        ("best_of", vec![json!(1)]),
        ("add_generation_prompt", vec![json!(true)]),
        ("continue_final_message", vec![json!(false)]),
    ] {
        fields.only(name, &neutral)?;
    }
    fields.finish()?;
    Ok(ParsedRequest {
        echo: false,
        kept_per_token: options::kept_per_token(&request, delivery),
        request,
        delivery,
        names,
        warnings,
        prompts: vec![None],
    })
}

/// Reads further arguments of the chat template, among them how much the model is to think.
fn template_arguments(fields: &mut JsonFields<'_>) -> Result<Option<wire_json::Object>, BadField> {
    let arguments = options::template_arguments(fields)?;
    Ok((!arguments.is_empty()).then(|| wire_json::to_wire(&arguments)))
}

/// Returns the message of a whole answer.
fn message(output: &WholeOutput) -> Value {
    let calls: Vec<Value> = output.calls().map(call).collect();
    let content = output.text();
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if !calls.is_empty() {
        if content.is_empty() {
            message["content"] = Value::Null;
        }
        message["tool_calls"] = json!(calls);
    }
    let reasoning = output.reasoning();
    if !reasoning.is_empty() {
        message["reasoning_content"] = json!(reasoning);
    }
    message
}

fn call(call: &v1::ToolCall) -> Value {
    let v1::ToolCall {
        id,
        name,
        arguments,
    } = call;
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

/// Returns what a piece of an answer adds to its message.
fn delta(said: &Said) -> Value {
    match said {
        Said::Text(text) => json!({ "content": text }),
        Said::Reasoning(text) => json!({ "reasoning_content": text }),
        Said::Call(index, begun) => {
            let mut begun = call(begun);
            begun["index"] = json!(index);
            json!({ "tool_calls": [begun] })
        }
        Said::Arguments(index, json) => {
            json!({ "tool_calls": [{ "index": index, "function": { "arguments": json } }] })
        }
    }
}

/// The layout of chats.
pub(super) static LAYOUT: AnswerLayout = AnswerLayout {
    prefix: "chatcmpl-",
    whole_object: "chat.completion",
    piece_object: "chat.completion.chunk",
    opening: Some(|| json!({ "delta": { "role": "assistant", "content": "" } })),
    whole: |_, output| json!({ "message": message(output) }),
    piece: |said| json!({ "delta": delta(said) }),
    closing: || json!({ "delta": {} }),
    logprobs: logprobs::OF_CHATS,
};

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read_json(value: &Value) -> Result<ParsedRequest, BadField> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn contents_are_texts_or_parts_of_text() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        let request = read_json(&json!({
            "messages": [{ "role": "system", "content": "s" }, { "role": "user", "content": parts, "name": null }],
            "max_tokens": 3, "max_completion_tokens": 5, "logprobs": true, "top_logprobs": 2,
        }))
        .expect("in order");
        let contents: Vec<_> = request
            .request
            .messages
            .iter()
            .map(|turn| &turn.content[..])
            .collect();
        assert_eq!(contents, ["s", "a\nb"]);
        assert_eq!(
            (request.request.max_tokens, request.request.top_logprobs),
            (Some(5), 2)
        );
    }

    /// As OpenAI's agents, AutoGen and Semantic Kernel do, and clients that come from other servers.
    #[test]
    fn answers_can_be_sent_back_as_they_came() {
        let part = json!({ "type": "text", "text": "b", "role": "assistant", "refusal": null, "cache_control": {} });
        let request = read_json(&json!({ "messages": [
            { "role": "user", "content": "a", "name": "bob" },
            { "role": "assistant", "content": [part], "id": 3, "refusal": null, "annotations": [1], "audio": null,
              "reasoning_content": "hm", "tool_calls": [], "logprobs": {} },
            { "role": "assistant", "content": null },
        ] }))
        .expect("in order");
        assert_eq!(request.request.messages[1].reasoning, "hm");
        let turns = request.request.messages.iter();
        let turns: Vec<_> = turns
            .map(|turn| (&turn.role[..], &turn.content[..], &turn.name[..]))
            .collect();
        assert_eq!(
            turns,
            [
                ("user", "a", "bob"),
                ("assistant", "b", ""),
                ("assistant", "", "")
            ]
        );
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
        let with = |name: &str, value: Value| {
            let mut request = user(json!("x"));
            request[name] = value;
            request
        };
        let image = json!([{ "type": "image_url", "image_url": { "url": "http://x" } }]);
        for (request, field) in [
            (user(image), "messages.0.content.0.type"),
            (user(json!(3)), "messages.0.content"),
            (user(json!(["x"])), "messages.0.content.0"),
            (json!({ "messages": [] }), "messages"),
            (
                json!({ "messages": [{ "content": "x" }] }),
                "messages.0.role",
            ),
            (
                json!({ "messages": [{ "role": "user" }] }),
                "messages.0.content",
            ),
            (
                json!({ "messages": [{ "role": "assistant", "tool_calls": [{}] }] }),
                "messages.0.tool_calls.0.function",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": "x", "name": 3 }] }),
                "messages.0.name",
            ),
            (with("tools", json!([{}])), "tools.0.name"),
            (with("tools", json!({})), "tools"),
            (
                with("chat_template_kwargs", json!([])),
                "chat_template_kwargs",
            ),
            (with("reasoning_effort", json!(3)), "reasoning_effort"),
            (
                with("response_format", json!({ "type": "xml" })),
                "response_format.type",
            ),
            (with("prompt", json!("x")), "prompt"),
        ] {
            assert_eq!(
                read_json(&request).err().map(|bad| bad.field).as_deref(),
                Some(field)
            );
        }
    }

    #[test]
    fn tools_calls_and_what_they_came_to_are_read_in_every_form_that_clients_send() {
        let function = json!({ "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true });
        let request = read_json(&json!({
            "messages": [
                { "role": "user", "content": "x" },
                { "role": "assistant", "tool_calls": [
                    { "id": "1", "type": "function", "function": { "name": "f", "arguments": "{\"a\": 1}" } },
                    { "id": "2", "function": { "name": "f", "arguments": { "a": 1 } } },
                    { "id": "3", "function": { "name": "f", "arguments": "" } },
                ] },
                { "role": "tool", "tool_call_id": "1", "content": [{ "type": "text", "text": "y" }], "name": "f" },
            ],
            "tools": [{ "type": "function", "function": function }, { "type": "web_search" }],
            "tool_choice": { "type": "function", "function": { "name": "f" } },
            "parallel_tool_calls": false,
            "reasoning_effort": "none",
        }))
        .expect("in order");
        assert_eq!(request.warnings.len(), 1);
        let request = request.request;
        let tool = v1::Tool {
            name: "f".to_owned(),
            description: "d".to_owned(),
            parameters: r#"{"type":"object"}"#.to_owned(),
            strict: true,
        };
        assert_eq!(request.tools, [tool]);
        assert_eq!(
            (&*request.called_tool, request.parallel_tool_calls),
            ("f", Some(false))
        );
        let arguments: Vec<_> = request.messages[1]
            .tool_calls
            .iter()
            .map(|call| &*call.arguments)
            .collect();
        assert_eq!(arguments, ["{\"a\": 1}", "{\"a\":1}", "{}"]);
        assert_eq!(request.messages[2].tool_call_id, "1");
        let told = wire_json::from_wire(request.template_arguments.expect("told"));
        assert_eq!(
            Value::from(told),
            json!({ "enable_thinking": false, "reasoning_effort": "none" })
        );
    }

    #[test]
    fn whether_to_call_is_said_in_words() {
        let choice = |choice: Value| {
            let tool = json!({ "type": "function", "function": { "name": "f" } });
            let request = json!({ "messages": [{ "role": "user", "content": "x" }], "tools": [tool], "tool_choice": choice });
            read_json(&request).map(|read| read.request.tool_choice())
        };
        assert_eq!(choice(json!("required")), Ok(v1::ToolChoice::Required));
        assert_eq!(choice(json!("any")), Ok(v1::ToolChoice::Required));
        assert_eq!(choice(json!("none")), Ok(v1::ToolChoice::None));
        assert_eq!(choice(json!(null)), Ok(v1::ToolChoice::Unspecified));
        for bad in [
            json!("sometimes"),
            json!(3),
            json!({ "type": "custom", "name": "f" }),
        ] {
            assert_eq!(choice(bad).expect_err("refused").field, "tool_choice");
        }
    }
}
