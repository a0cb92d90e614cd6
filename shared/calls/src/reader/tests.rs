//! Every form, however its text is cut.

use serde_json::{Value, json};

use super::*;
use crate::form::FORMS;
use wire::v1;

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

/// Arguments with all that is hard to cut.
const HARD: &str = r#"{"city": "Zürich \"</tool_call>\" \\ {[\u00e9😀日本", "days": 3}"#;
const HARD_MARK: &str = "\"</tool_call>";
const EASY: &str = r#"{"city": "Paris"}"#;

/// Returns an output of the form `name` that calls `weather` with `first` and, if there is one, `time` with `second`.
fn written(name: &str, first: &str, second: Option<&str>) -> String {
    let json = |key: &str, tool: &str, arguments: &str| {
        format!("{{\"name\": \"{tool}\", \"{key}\": {arguments}}}")
    };
    let both = |of: &dyn Fn(&str, &str) -> String, between: &str| {
        let mut out = of("weather", first);
        if let Some(second) = second {
            out += between;
            out += &of("time", second);
        }
        out
    };
    let list = || both(&|tool, arguments| json("arguments", tool, arguments), ", ");
    match name {
        "hermes" | "generic" => both(
            &|tool, arguments| {
                format!(
                    "<tool_call>\n{}\n</tool_call>",
                    json("arguments", tool, arguments)
                )
            },
            "\n",
        ),
        "llama-3" => both(&|tool, arguments| json("parameters", tool, arguments), "; "),
        "mistral" => format!("[TOOL_CALLS] [{}]", list()),
        "mistral-args" => both(
            &|tool, arguments| format!("[TOOL_CALLS]{tool}[ARGS]{arguments}"),
            "",
        ),
        "granite" => format!("<|tool_call|>[{}]", list()),
        "phi-4" => format!("<|tool_call|>[{}]<|/tool_call|>", list()),
        "deepseek" => {
            let calls = both(
                &|tool, arguments| {
                    format!(
                        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{tool}\n```json\n{arguments}\n```<｜tool▁call▁end｜>"
                    )
                },
                "\n",
            );
            format!("<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>")
        }
        "gpt-oss" => both(
            &|tool, arguments| {
                format!(
                    "<|channel|>commentary to=functions.{tool} <|constrain|>json<|message|>{arguments}<|call|>"
                )
            },
            "<|start|>assistant",
        ),
        "qwen3-coder" => both(
            &|tool, arguments| {
                let arguments: Value = serde_json::from_str(arguments).expect("JSON");
                let parameters = arguments.as_object().expect("an object").iter();
                let parameters = parameters.map(|(key, value)| {
                    let text = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    format!("<parameter={key}>\n{text}\n</parameter>\n")
                });
                let parameters: String = parameters.collect();
                format!("<tool_call>\n<function={tool}>\n{parameters}</function>\n</tool_call>")
            },
            "\n",
        ),
        other => panic!("no form {other}"),
    }
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
fn what_is_no_call_is_content_and_nothing_is_lost() {
    for (name, output, content) in [
        (
            "hermes",
            "<tool_call>\n{name: 1}\n</tool_call> x",
            "<tool_call>\n{name: 1}\n</tool_call> x",
        ),
        (
            "hermes",
            "<tool_call>\n{\"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"arguments\": {}}\n</tool_call>",
        ),
        ("hermes", "a <tool_call>\n{\"na", "a<tool_call>\n{\"na"),
        (
            "hermes",
            "<tool_call>no</tool_call>",
            "<tool_call>no</tool_call>",
        ),
        ("llama-3", "{\"a\": 1}", "{\"a\": 1}"),
        ("mistral", "[TOOL_CALLS] nothing", "[TOOL_CALLS] nothing"),
        ("mistral-args", "[TOOL_CALLS]weather", "[TOOL_CALLS]weather"),
        (
            "deepseek",
            "<｜tool▁call▁begin｜>weather",
            "<｜tool▁call▁begin｜>weather",
        ),
        ("qwen3-coder", "<tool_call>\nfoo", "<tool_call>\nfoo"),
        ("phi-4", "functools of C++", "functools of C++"),
    ] {
        let read = read_in_every_way(form(name), output);
        assert_eq!(read.content, content, "{name}");
        assert_eq!(read.calls, [], "{name}");
    }
}

#[test]
fn a_call_that_is_cut_off_is_told_as_far_as_it_came() {
    for form in all_forms().filter(|form| form.name != "gpt-oss") {
        let whole = written(form.name, EASY, None);
        for length in 0..whole.len() {
            let Some(output) = whole.get(..length) else {
                continue;
            };
            let cut = read_in_every_way(form, output);
            match &cut.calls[..] {
                [] => {}
                [(name, arguments)] => {
                    assert_eq!(name, "weather");
                    // The line break before what ends a value is a part of it until that came.
                    let arguments = arguments.split("\\n").next().expect("a line");
                    assert!(EASY.starts_with(arguments), "{}: {arguments}", form.name);
                }
                more => panic!("{more:?}"),
            }
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

#[test]
fn what_a_grammar_holds_is_no_text_where_it_is_cut_off() {
    let mut reading = reading(form("hermes"), false);
    reading.is_held = true;
    let got = read(&reading, "Hm. <tool_call>\n{\"name\":", |_| true);
    assert_eq!((&*got.content, got.calls.len()), ("Hm.", 0));
}

/// Pieces of outputs, right ones and wrong ones.
const SCRAPS: [&str; 34] = [
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<function=",
    "weather",
    ">",
    "<parameter=city>",
    "</parameter>",
    "</function>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|python_tag|>",
    "<|tool_call|>",
    "functools",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|channel|>",
    "<|message|>",
    "commentary to=functions.x ",
    "{",
    "}",
    "[",
    "]",
    "\"name\": ",
    "\"weather\"",
    "\"arguments\": ",
    ", ",
    "\"",
    "\\",
    "\n",
    " 12",
    "é<",
];

/// Whatever a model writes, it is read alike however it is cut.
#[test]
fn what_is_read_does_not_depend_on_how_the_output_was_cut() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut some = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most as u64) as usize
    };
    for form in all_forms() {
        for begins_in_reasoning in [false, true] {
            for _ in 0..3_000 {
                let output: String = (0..some(14)).map(|_| SCRAPS[some(SCRAPS.len())]).collect();
                let special = some(2) == 0;
                let mut reading = reading(form, special);
                reading.begins_in_reasoning = begins_in_reasoning;
                let whole = read(&reading, &output, |_| false);
                let single = read(&reading, &output, |_| true);
                assert_eq!(
                    whole, single,
                    "{}: {output:?}, special {special}",
                    form.name
                );
                let step = 2 + some(6);
                let steps = read(&reading, &output, |at| at % step == 0);
                assert_eq!(
                    whole, steps,
                    "{}: {output:?} by {step}, special {special}",
                    form.name
                );
            }
        }
    }
}
