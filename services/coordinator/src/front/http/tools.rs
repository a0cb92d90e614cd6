//! Tools: the fields by which clients of OpenAI say what a model may call.

use serde_json::value::RawValue;
use wire::bounds::MAX_TOOLS;
use wire::status::BadField;
use wire::v1;

use super::fields::{JsonFields, list, quoted};

/// Names of fields that gRPC calls otherwise.
pub(super) const NAMES: [(&str, &str); 2] = [
    ("called_tool", "tool_choice"),
    ("template_arguments", "chat_template_kwargs"),
];

/// The field that says whether tools are called.
const FIELD: &str = "tool_choice";

/// Most tools of all types that a request may list.
const MOST_LISTED: usize = 2 * MAX_TOOLS;

/// Reads what may be called, and whether, into `request`. Tools of types that are not run here are left out: the result says
/// so, one sentence for each.
///
/// # Errors
/// Names the field that is not what it must be.
pub(super) fn read(
    fields: &mut JsonFields<'_>,
    request: &mut v1::GenerateRequest,
) -> Result<Vec<String>, BadField> {
    let given = fields.take_by("tools", |json| list::<&RawValue>(json, MOST_LISTED))?;
    let given = given.unwrap_or_default();
    let mut warnings = Vec::new();
    for (index, tool) in given.iter().enumerate() {
        match one(&format!("tools.{index}"), tool)? {
            Ok(tool) => request.tools.push(tool),
            Err(kind) => warnings.push(left_out(index, &kind)),
        }
    }
    request.parallel_tool_calls = fields.take("parallel_tool_calls")?;
    let choice = fields.take_raw("tool_choice");
    // Some clients ask for calls where they have no tools.
    match choice {
        Some(choice) if !given.is_empty() => choose(choice, request)?,
        Some(choice) if !matches!(choice.get(), "\"auto\"" | "\"none\"") => {
            warnings.push(format!("{FIELD} is left out: there are no tools"));
        }
        _ => {}
    }
    Ok(warnings)
}

/// Says that the tool at `index` is none that is called.
pub(super) fn left_out(index: usize, kind: &str) -> String {
    let kind = quoted(kind);
    format!("tools.{index} is left out: tools of type '{kind}' are not run here")
}

/// Reads a tool, which stands in `function` or by itself; or returns its type, if that is none that is called.
fn one(path: &str, tool: &RawValue) -> Result<Result<v1::Tool, String>, BadField> {
    let mut fields = JsonFields::within(path, tool)?;
    let kind: Option<String> = fields.take("type")?;
    let kind = kind.unwrap_or_else(|| "function".to_owned());
    if kind != "function" {
        return Ok(Err(kind));
    }
    let mut function = match fields.take_object("function")? {
        Some(function) => function,
        None => fields,
    };
    let name: Option<String> = function.take("name")?;
    Ok(Ok(v1::Tool {
        name: name.ok_or_else(|| function.error("name", "missing"))?,
        description: function.take("description")?.unwrap_or_default(),
        parameters: function
            .take_raw("parameters")
            .map_or("", RawValue::get)
            .to_owned(),
        strict: function.take("strict")?.unwrap_or_default(),
    }))
}

/// Reads whether tools are called.
fn choose(choice: &RawValue, request: &mut v1::GenerateRequest) -> Result<(), BadField> {
    if choice.get().starts_with('{') {
        let mut fields = JsonFields::within(FIELD, choice)?;
        let kind: Option<String> = fields.take("type")?;
        if kind.as_deref() == Some("allowed_tools") {
            return allow(fields, request);
        }
        let mut function = match fields.take_object("function")? {
            Some(function) => function,
            None => fields,
        };
        let name: Option<String> = function.take("name")?;
        if kind.as_deref() != Some("function") {
            let problem = "expected a function with its name, or allowed_tools";
            return Err(BadField::new(FIELD, problem));
        }
        request.called_tool = name.ok_or_else(|| function.error("name", "missing"))?;
        return Ok(());
    }
    request.set_tool_choice(word(choice)?);
    Ok(())
}

/// Leaves the tools that are not among the allowed ones out.
fn allow(mut fields: JsonFields<'_>, request: &mut v1::GenerateRequest) -> Result<(), BadField> {
    let mut allowed = match fields.take_object("allowed_tools")? {
        Some(allowed) => allowed,
        None => fields,
    };
    let mode = allowed.take_raw("mode");
    let choice = mode.map_or(Ok(v1::ToolChoice::Auto), word)?;
    let listed = allowed.take_by("tools", |json| list::<&RawValue>(json, MOST_LISTED))?;
    let mut names = Vec::new();
    for (index, tool) in listed.unwrap_or_default().iter().enumerate() {
        if let Ok(tool) = one(&format!("{FIELD}.tools.{index}"), tool)? {
            names.push(tool.name);
        }
    }
    if let Some(other) = names
        .iter()
        .find(|name| request.tools.iter().all(|tool| tool.name != **name))
    {
        let problem = format!("'{}' is none of the tools", quoted(other));
        return Err(BadField::new(FIELD, problem));
    }
    request.tools.retain(|tool| names.contains(&tool.name));
    request.set_tool_choice(choice);
    Ok(())
}

/// Reads whether tools are called, in a word.
fn word(choice: &RawValue) -> Result<v1::ToolChoice, BadField> {
    let text: Result<String, _> = serde_json::from_str(choice.get());
    match text.as_deref() {
        Ok("auto") => Ok(v1::ToolChoice::Auto),
        Ok("none") => Ok(v1::ToolChoice::None),
        // `any` is Mistral's word.
        Ok("required" | "any") => Ok(v1::ToolChoice::Required),
        _ => {
            let problem = "expected none, auto, required, or a named function";
            Err(BadField::new(FIELD, problem))
        }
    }
}
