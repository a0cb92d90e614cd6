//! What the model may call in a chat: tools of a file, in the form of OpenAI's API.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use coordinator::limits::MAX_REQUEST_BYTES;
use net::bounded;
use serde_json::Value;
use wire::v1;

/// Reads the tools that stand in `file`: a list of `{"type": "function", "function": {"name", "description", "parameters"}}`,
/// or of what stands in `function` alone.
///
/// # Errors
/// Names the file, and the tool that is not in order.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<v1::Tool>> {
    let named = || format!("--tools: {}", file.display());
    let text = bounded::text_file(file, MAX_REQUEST_BYTES as u64).with_context(named)?;
    let tools: Value = serde_json::from_str(&text).with_context(named)?;
    let Value::Array(tools) = tools else {
        bail!("{}: expected a list of tools", named());
    };
    let tools = tools.iter().enumerate();
    let read = tools.map(|(at, tool)| {
        one(tool).ok_or_else(|| anyhow!("{}: tool {at}: expected a function with a name", named()))
    });
    read.collect()
}

fn one(tool: &Value) -> Option<v1::Tool> {
    let function = tool.get("function").unwrap_or(tool);
    let parameters = function.get("parameters").filter(|it| !it.is_null());
    Some(v1::Tool {
        name: function.get("name")?.as_str()?.to_owned(),
        description: function
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        parameters: parameters.map(Value::to_string).unwrap_or_default(),
        strict: function
            .get("strict")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
    })
}

/// Returns whether a tool must be called: `auto`, `none`, `required`, or the name of the one that must.
pub(super) fn choose(choice: &str, request: &mut v1::GenerateRequest) {
    let choice = match choice {
        "auto" => v1::ToolChoice::Auto,
        "none" => v1::ToolChoice::None,
        "required" => v1::ToolChoice::Required,
        name => {
            name.clone_into(&mut request.called_tool);
            return;
        }
    };
    request.set_tool_choice(choice);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_read_in_either_form_and_faults_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tools.json");
        let read = |text: &str| {
            std::fs::write(&file, text).expect("written");
            read(&file).map_err(|error| format!("{error:#}"))
        };
        let tool = v1::Tool {
            name: "now".to_owned(),
            description: "Tells the time".to_owned(),
            parameters: r#"{"type":"object"}"#.to_owned(),
            strict: false,
        };
        let inner =
            r#"{"name": "now", "description": "Tells the time", "parameters": {"type": "object"}}"#;
        assert_eq!(read(&format!("[{inner}]")), Ok(vec![tool.clone()]));
        let outer = format!(r#"[{{"type": "function", "function": {inner}}}]"#);
        assert_eq!(read(&outer), Ok(vec![tool]));
        for (text, words) in [
            ("{", "tools.json: EOF"),
            ("{}", "tools.json: expected a list"),
            (
                "[{}]",
                "tools.json: tool 0: expected a function with a name",
            ),
        ] {
            let error = read(text).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }
}
