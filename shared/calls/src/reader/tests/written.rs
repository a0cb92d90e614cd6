//! Outputs with calls, as models of each form write them.

use serde_json::Value;

/// Arguments with all that is hard to cut.
pub(super) const HARD: &str = r#"{"city": "Zürich \"</tool_call>\" \\ {[\u00e9😀日本", "days": 3}"#;
/// A mark in them, which is no token there.
pub(super) const HARD_MARK: &str = "\"</tool_call>";
/// Others.
pub(super) const EASY: &str = r#"{"city": "Paris"}"#;

/// Returns an output of the form `name` that calls `weather` with `first` and, if there is one, `time` with `second`.
pub(super) fn written(name: &str, first: &str, second: Option<&str>) -> String {
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
