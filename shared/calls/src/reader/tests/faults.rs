//! What is no call, and calls that are cut off.

use super::*;

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
fn what_a_grammar_holds_is_no_text_where_it_is_cut_off() {
    let mut reading = reading(form("hermes"), false);
    reading.is_held = true;
    let got = read(&reading, "Hm. <tool_call>\n{\"name\":", |_| true);
    assert_eq!((&*got.content, got.calls.len()), ("Hm.", 0));
}
