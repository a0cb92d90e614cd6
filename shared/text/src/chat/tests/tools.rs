//! Templates of every form: they are told of tools as Python's are, and the calls that they write are read again.

use std::sync::Arc;

use calls::{CallForm, OutputPiece, OutputReader, OutputReading, ReasoningMarks, Tools};
use wire::v1;

use super::*;

fn source(form: &str) -> &'static str {
    match form {
        "deepseek" => include_str!("../golden/calls/deepseek.jinja"),
        "gpt-oss" => include_str!("../golden/calls/gpt-oss.jinja"),
        "granite" => include_str!("../golden/calls/granite.jinja"),
        "hermes" => include_str!("../golden/calls/hermes.jinja"),
        "llama-3" => include_str!("../golden/calls/llama-3.jinja"),
        "mistral" => include_str!("../golden/calls/mistral.jinja"),
        "mistral-args" => include_str!("../golden/calls/mistral-args.jinja"),
        "phi-4" => include_str!("../golden/calls/phi-4.jinja"),
        "qwen3-coder" => include_str!("../golden/calls/qwen3-coder.jinja"),
        other => panic!("no template {other}"),
    }
}

fn cases() -> Vec<Json> {
    serde_json::from_str(include_str!("../golden/calls.json")).expect("JSON")
}

fn text<'a>(case: &'a Json, key: &str) -> &'a str {
    case[key].as_str().expect(key)
}

fn arguments(case: &Json) -> Vec<&str> {
    let arguments = case["arguments"].as_array().expect("a list").iter();
    arguments
        .map(|json| json.as_str().expect("a text"))
        .collect()
}

fn tools() -> Tools {
    let parameters = r#"{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}"#;
    let tool = |name: &str| v1::Tool {
        name: name.to_owned(),
        description: "Tells it".to_owned(),
        parameters: parameters.to_owned(),
        strict: false,
    };
    let mut request = v1::GenerateRequest {
        tools: vec![tool("weather"), tool("time")],
        ..Default::default()
    };
    Tools::take(&mut request).expect("tools")
}

/// The conversation of a case: a question, calls, and what they came to.
fn conversation(case: &Json) -> Vec<ChatMessage> {
    let calls = arguments(case)
        .into_iter()
        .zip(["weather", "time"])
        .enumerate();
    let calls = calls.map(|(at, (arguments, name))| v1::ToolCall {
        // The last nine signs are all that templates of Mistral take.
        id: format!("call_7cal1abc{at:02}"),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    });
    let turn = ChatMessage {
        tool_calls: calls.collect(),
        reasoning: text(case, "given_reasoning").to_owned(),
        ..message("assistant", text(case, "given_content"))
    };
    let results = turn
        .tool_calls
        .iter()
        .enumerate()
        .map(|(at, call)| ChatMessage {
            name: call.name.clone(),
            tool_call_id: call.id.clone(),
            ..message("tool", &format!("It is {at}."))
        });
    let results: Vec<_> = results.collect();
    let turns = [message("user", "Weather?"), turn];
    turns.into_iter().chain(results).collect()
}

#[test]
fn tools_and_calls_are_told_as_python_tells_them() {
    for case in cases() {
        let form = text(&case, "form");
        let template =
            ChatTemplate::new(source(form).to_owned(), "<s>".to_owned(), "</s>".to_owned());
        let conversation = Conversation {
            messages: &conversation(&case),
            tools: Some(&tools().to_template()),
            arguments: None,
        };
        let rendered = template.expect("a template").render(&conversation, MOST);
        assert_eq!(rendered.as_deref(), Ok(text(&case, "prompt")), "{form}");
    }
}

#[test]
fn the_form_of_a_template_is_found_and_reads_the_calls_that_it_writes() {
    for case in cases() {
        let form = CallForm::of_template(source(text(&case, "form")));
        assert_eq!(form.name, text(&case, "form"));
        let reading = OutputReading {
            form: Some(form),
            reasoning: ReasoningMarks::of_template(source(form.name)),
            begins_in_reasoning: false,
            tools: Arc::new(tools()),
            special_marks: Vec::new(),
            is_held: false,
        };
        let output = text(&case, "output");
        for step in 1..=output.len() {
            let mut reader = OutputReader::new(reading.clone());
            let mut pieces = Vec::new();
            let characters: Vec<char> = output.chars().collect();
            for piece in characters.chunks(step) {
                pieces.extend(reader.text(&String::from_iter(piece)));
            }
            pieces.extend(reader.finish());
            let (mut content, mut reasoning, mut calls) =
                (String::new(), String::new(), Vec::new());
            for piece in pieces {
                match piece {
                    OutputPiece::Content(text) => content += &text,
                    OutputPiece::Reasoning(text) => reasoning += &text,
                    OutputPiece::Call(name) => calls.push((name, String::new())),
                    OutputPiece::Arguments(json) => calls.last_mut().expect("a call").1 += &json,
                }
            }
            assert_eq!(content, text(&case, "content"), "{}", form.name);
            assert_eq!(reasoning, text(&case, "reasoning"), "{}", form.name);
            let expected = ["weather", "time"].map(str::to_owned).into_iter();
            let expected: Vec<_> = expected
                .zip(arguments(&case).iter().map(|json| (*json).to_owned()))
                .collect();
            assert_eq!(calls, expected, "{} in pieces of {step}", form.name);
        }
    }
}
