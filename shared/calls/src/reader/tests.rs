//! Every form, however its text is cut.

use serde_json::{Value, json};

use super::*;
use crate::form::FORMS;
use crate::tools::Tools;
use wire::v1;

mod cuts;
mod faults;
mod written;

use written::{EASY, HARD, HARD_MARK, written};

fn tools() -> Tools {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "any": {}},
    });
    let tool = |name: &str| v1::Tool {
        name: name.to_owned(),
        parameters: schema.to_string(),
        ..Default::default()
    };
    let mut request = v1::GenerateRequest {
        tools: vec![tool("weather"), tool("time")],
        ..Default::default()
    };
    Tools::take(&mut request).expect("tools")
}

/// What an output came to.
#[derive(Debug, Default, PartialEq)]
struct Read {
    content: String,
    reasoning: String,
    calls: Vec<(String, String)>,
}

impl Read {
    fn add(&mut self, pieces: Vec<OutputPiece>) {
        for piece in pieces {
            match piece {
                OutputPiece::Content(text) => self.content += &text,
                OutputPiece::Reasoning(text) => self.reasoning += &text,
                OutputPiece::Call(name) => self.calls.push((name, String::new())),
                OutputPiece::Arguments(json) => {
                    self.calls.last_mut().expect("a call").1 += &json;
                }
            }
        }
    }
}

/// Marks that no model has a token for.
const NEVER_TOKENS: [&str; 2] = ["<function=", "functools"];

fn reading(form: &'static CallForm, special: bool) -> OutputReading {
    let reasoning = (form.layout != CallLayout::Channels).then_some(ReasoningMarks {
        open: "<think>",
        close: "</think>",
    });
    let mut special_marks = Vec::new();
    if special {
        let marks = OutputReading::marks(Some(form), reasoning);
        special_marks.extend(marks.filter(|mark| !NEVER_TOKENS.contains(mark)));
    }
    OutputReading {
        form: Some(form),
        reasoning,
        begins_in_reasoning: false,
        tools: Arc::new(tools()),
        special_marks,
        is_held: false,
    }
}

/// Reads `output` in pieces that end at `cuts`; marks that are special come by themselves.
fn read(reading: &OutputReading, output: &str, cuts: impl Fn(usize) -> bool) -> Read {
    let mut reader = OutputReader::new(reading.clone());
    let mut read = Read::default();
    let mut piece = String::new();
    let mut at = 0;
    while at < output.len() {
        let rest = &output[at..];
        let mark = reading
            .special_marks
            .iter()
            .find(|mark| rest.starts_with(**mark));
        if let Some(mark) = mark {
            read.add(reader.text(&std::mem::take(&mut piece)));
            read.add(reader.special(reader.mark(mark).expect("a mark")));
            at += mark.len();
            continue;
        }
        let next = rest.chars().next().expect("more");
        piece.push(next);
        at += next.len_utf8();
        if cuts(at) {
            read.add(reader.text(&std::mem::take(&mut piece)));
        }
    }
    read.add(reader.text(&piece));
    read.add(reader.finish());
    read
}

/// Reads `output` in every way, and returns what all of them give.
fn read_in_every_way(form: &'static CallForm, output: &str) -> Read {
    let mut first = None;
    for special in [false, true] {
        // A mark in an argument is no token.
        if special && output.contains(HARD_MARK) {
            continue;
        }
        let reading = reading(form, special);
        let mut same = |read: Read, how: &str| match &first {
            None => first = Some(read),
            Some(first) => assert_eq!(*first, read, "{}: {how}: {output:?}", form.name),
        };
        same(read(&reading, output, |_| false), "whole");
        same(read(&reading, output, |_| true), "character by character");
        for cut in 0..output.len() {
            same(read(&reading, output, |at| at == cut), "in two");
        }
        for step in 2..9 {
            same(read(&reading, output, |at| at % step == 0), "in steps");
        }
    }
    first.expect("read")
}

fn form(name: &str) -> &'static CallForm {
    CallForm::named(name).expect(name)
}

fn all_forms() -> impl Iterator<Item = &'static CallForm> {
    FORMS.iter().chain([&crate::form::GENERIC])
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

#[test]
fn a_call_of_every_form_is_read_however_it_is_cut() {
    for form in all_forms() {
        for arguments in [
            EASY,
            HARD,
            "{}",
            r#"{"any": {"a": [1, {"b": null}], "c": "}"}}"#,
        ] {
            let read = read_in_every_way(form, &written(form.name, arguments, None));
            assert_eq!(read.content, "", "{}", form.name);
            let [(name, given)] = &read.calls[..] else {
                panic!("{}: {read:?}", form.name);
            };
            assert_eq!(name, "weather");
            if form.name == "qwen3-coder" {
                let value = |json: &str| serde_json::from_str::<Value>(json).expect(json);
                assert_eq!(value(given), value(arguments));
            } else {
                assert_eq!(given, arguments, "{}", form.name);
            }
        }
    }
}

#[test]
fn two_calls_are_two() {
    for form in all_forms() {
        let read = read_in_every_way(form, &written(form.name, EASY, Some(r#"{"days": 2}"#)));
        let expected = [call("weather", EASY), call("time", r#"{"days": 2}"#)];
        assert_eq!(read.calls, expected, "{}", form.name);
        assert_eq!(read.content, "", "{}", form.name);
    }
}

#[test]
fn content_around_calls_is_kept_and_space_beside_marks_is_not() {
    for form in all_forms() {
        let calls = written(form.name, EASY, None);
        match form.name {
            "gpt-oss" => {
                let output = format!(
                    "<|channel|>analysis<|message|>Hm.\n<|end|><|start|>assistant<|channel|>commentary<|message|>I look. <|end|><|start|>assistant{calls}"
                );
                let read = read_in_every_way(form, &output);
                assert_eq!(read.reasoning, "Hm.\n");
                assert_eq!(read.content, "I look. ");
                assert_eq!(read.calls, [call("weather", EASY)]);
                let answer = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|> It rains.<|return|>";
                let read = read_in_every_way(form, answer);
                assert_eq!((&*read.reasoning, &*read.content), ("Hm.", " It rains."));
            }
            // Its calls have no mark in the middle of a text.
            "llama-3" => {
                let output = format!("\n{calls}\nDone.");
                let read = read_in_every_way(form, &output);
                assert_eq!(read.content, "Done.");
                assert_eq!(read.calls, [call("weather", EASY)]);
                let marked = format!("I look. <|python_tag|>{calls}");
                let read = read_in_every_way(form, &marked);
                assert_eq!(read.content, "I look.");
                assert_eq!(read.calls, [call("weather", EASY)]);
            }
            _ => {
                let output =
                    format!("<think>\n\nHm, <tool_ca\n</think>\n\nI look. \n{calls}\n Done. ");
                let read = read_in_every_way(form, &output);
                assert_eq!(read.reasoning, "Hm, <tool_ca", "{}", form.name);
                assert_eq!(read.content, "I look.Done. ", "{}", form.name);
                assert_eq!(read.calls, [call("weather", EASY)], "{}", form.name);
            }
        }
    }
}

#[test]
fn an_output_without_calls_is_as_the_model_wrote_it() {
    for form in all_forms().filter(|form| form.name != "gpt-oss") {
        for output in [
            "",
            " ",
            "\n\nHello, <tool 1 < 2 [TOOL functool\n ",
            "a\n<",
            "  {not a call} ",
        ] {
            if form.name == "llama-3" && output.trim_start().starts_with('{') {
                continue;
            }
            let read = read_in_every_way(form, output);
            assert_eq!(read.content, output, "{}", form.name);
            assert_eq!(read.calls, []);
        }
    }
}

#[test]
fn arguments_may_come_first_wrapped_or_not_at_all() {
    for (output, arguments) in [
        (
            r#"{"arguments": {"city": "x"}, "name": "weather"}"#,
            r#"{"city": "x"}"#,
        ),
        (
            r#"{"id": 7, "name": "weather", "arguments": "{\"city\": \"x\"}"}"#,
            r#"{"city": "x"}"#,
        ),
        (r#"{"name": "weather"}"#, "{}"),
        (r#"{"name": "weather", "arguments": null}"#, "{}"),
        (r#"{"name": "weather", "arguments": ""}"#, "{}"),
        (
            r#"{"type": "function", "name": "weather", "parameters": {}}"#,
            "{}",
        ),
        (
            r#"{"name":"weather","arguments":{"a":1 </tool_call>"#,
            r#"{"a":1 "#,
        ),
    ] {
        let read = read_in_every_way(form("hermes"), &format!("<tool_call>{output}</tool_call>"));
        let rest = if output.ends_with("</tool_call>") {
            "</tool_call>"
        } else {
            ""
        };
        assert_eq!(read.content, rest);
        assert_eq!(read.calls, [call("weather", arguments)], "{output}");
    }
}

#[test]
fn a_mark_that_is_a_special_token_is_not_read_where_it_is_spelled() {
    let form = form("mistral");
    let mut reading = reading(form, true);
    reading.reasoning = None;
    let mut reader = OutputReader::new(reading);
    let mut read = Read::default();
    read.add(reader.text("[TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": {}}]"));
    read.add(reader.finish());
    assert_eq!(read.calls, []);
    assert!(read.content.starts_with("[TOOL_CALLS]"));
}

#[test]
fn reasoning_may_have_begun_in_the_prompt() {
    let mut reading = reading(form("hermes"), false);
    reading.begins_in_reasoning = true;
    let got = read(&reading, "Hm.\n</think>\n\nYes. <think>no</think>", |_| {
        true
    });
    assert_eq!(
        (&*got.reasoning, &*got.content),
        ("Hm.", "Yes. <think>no</think>")
    );
    reading.form = None;
    let got = read(&reading, "Hm <tool_call>", |_| true);
    assert_eq!((&*got.reasoning, &*got.content), ("Hm <tool_call>", ""));
}

#[test]
fn values_of_elements_are_what_the_schema_says() {
    let output = "<tool_call>\n<function=weather>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n3\n</parameter>\n\
        <parameter=any>\nTrue\n</parameter>\n</function>\n</tool_call>";
    let read = read_in_every_way(form("qwen3-coder"), output);
    assert_eq!(
        read.calls,
        [call("weather", r#"{"city": "12", "days": 3, "any": true}"#)]
    );
    // Without the mark, and a value that is no JSON.
    let bare = "<function=time>\n<parameter=any>\n\na\nb\n\n</parameter>\n</function>";
    let read = read_in_every_way(form("qwen3-coder"), bare);
    assert_eq!(read.calls, [call("time", r#"{"any": "a\nb"}"#)]);
}
