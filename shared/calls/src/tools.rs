//! The tools of a request, checked.

use serde_json::{Map, Value, json};
use wire::status::BadField;
use wire::v1;

use wire::bounds::{MAX_TOOLS, MAX_TOOLS_BYTES};

/// Longest name of a tool, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Signs that names may have beside letters and digits: none that any form writes around a name.
const NAME_SIGNS: &str = "_-.:/";

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq)]
pub struct CalledTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments, an object.
    pub parameters: Value,
    /// Whether the schema must be enforced.
    pub strict: bool,
    /// Whether any object may be its arguments, because the schema cannot be enforced.
    pub is_free: bool,
}

/// Whether tools are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhetherToCall {
    /// As the model decides.
    Auto,
    /// One of them at least.
    Required,
    /// This one, once.
    Named(String),
}

/// The tools of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tools {
    offered: Vec<CalledTool>,
    whether: Option<WhetherToCall>,
    /// Whether there may be several calls, where the request says.
    parallel: Option<bool>,
}

impl Tools {
    /// Takes the tools of `request`; none if it has none, or says that none is to be called.
    ///
    /// # Errors
    /// Names `tools`, with the tool that is not in order; `called_tool`, if it is none of them; or what is given without
    /// tools.
    pub fn take(request: &mut v1::GenerateRequest) -> Result<Self, BadField> {
        let given = std::mem::take(&mut request.tools);
        let called = std::mem::take(&mut request.called_tool);
        BadField::at_most("tools", given.len(), MAX_TOOLS, "tools")?;
        let bytes = given
            .iter()
            .map(|it| it.name.len() + it.description.len() + it.parameters.len());
        BadField::at_most("tools", bytes.sum(), MAX_TOOLS_BYTES, "bytes")?;
        let mut tools: Vec<CalledTool> = Vec::with_capacity(given.len());
        for tool in given {
            let tool = checked(tool)?;
            if tools.iter().any(|other| other.name == tool.name) {
                return Err(bad(&tool.name, "stands twice"));
            }
            tools.push(tool);
        }
        if !called.is_empty() && !tools.iter().any(|tool| tool.name == called) {
            let problem = format!("'{}' is none of the tools", beginning(&called));
            return Err(BadField::new("called_tool", problem));
        }
        let choice = request.tool_choice();
        let whether = match choice {
            _ if !called.is_empty() => WhetherToCall::Named(called),
            v1::ToolChoice::Required if tools.is_empty() => {
                return Err(BadField::new(
                    "tool_choice",
                    "required, and there are no tools",
                ));
            }
            v1::ToolChoice::Required => WhetherToCall::Required,
            v1::ToolChoice::None => return Ok(Self::default()),
            v1::ToolChoice::Auto | v1::ToolChoice::Unspecified => WhetherToCall::Auto,
        };
        Ok(Self {
            whether: (!tools.is_empty()).then_some(whether),
            offered: tools,
            parallel: request.parallel_tool_calls,
        })
    }

    /// Returns whether there are none that may be called.
    pub fn is_empty(&self) -> bool {
        self.offered.is_empty()
    }

    /// Returns the tools.
    pub fn iter(&self) -> impl Iterator<Item = &CalledTool> {
        self.offered.iter()
    }

    /// Returns whether they are called; none if there are none.
    pub fn whether(&self) -> Option<&WhetherToCall> {
        self.whether.as_ref()
    }

    /// Returns whether there may be several calls in an answer whose form is generic or not.
    pub(crate) fn may_be_several(&self, is_generic: bool) -> bool {
        let one = matches!(self.whether, Some(WhetherToCall::Named(_)));
        !one && self.parallel.unwrap_or(!is_generic)
    }

    /// Returns the tools as Hugging Face's templates get them.
    pub fn to_template(&self) -> Value {
        let tools = self.offered.iter().map(CalledTool::to_template);
        Value::Array(tools.collect())
    }

    /// Returns the tools, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut CalledTool> {
        self.offered.iter_mut()
    }

    /// Returns whether the parameter `key` of the tool `name` is text by its schema.
    pub(crate) fn is_text(&self, name: &str, key: &str) -> bool {
        let tool = self.offered.iter().find(|tool| tool.name == name);
        let Some(schema) = tool.and_then(|tool| tool.parameters.get("properties")?.get(key)) else {
            return false;
        };
        is_text(schema)
    }
}

/// Returns whether what `schema` describes is always text.
pub(crate) fn is_text(schema: &Value) -> bool {
    if let Some(Value::Array(values)) = schema.get("enum") {
        return values.iter().all(Value::is_string);
    }
    schema.get("type") == Some(&json!("string"))
}

impl CalledTool {
    /// Returns the schema that its arguments follow in grammars. Properties that it does not name are none of its, unless it
    /// says so: small models add some without end.
    pub fn enforced(&self) -> Value {
        let mut schema = self.parameters.clone();
        match &mut schema {
            Value::Object(fields) if !self.is_free => {
                fields.entry("type").or_insert_with(|| json!("object"));
                let names_some = fields.get("properties").and_then(Value::as_object);
                let is_open = ["patternProperties", "anyOf", "allOf", "oneOf", "$ref"];
                if names_some.is_some_and(|names| !names.is_empty())
                    && !is_open.iter().any(|key| fields.contains_key(*key))
                {
                    fields.entry("additionalProperties").or_insert(json!(false));
                }
                schema
            }
            _ => json!({ "type": "object" }),
        }
    }

    fn to_template(&self) -> Value {
        let mut function = Map::new();
        function.insert("name".to_owned(), json!(self.name));
        if !self.description.is_empty() {
            function.insert("description".to_owned(), json!(self.description));
        }
        function.insert("parameters".to_owned(), self.parameters.clone());
        json!({ "type": "function", "function": function })
    }
}

/// Checks one tool.
fn checked(tool: v1::Tool) -> Result<CalledTool, BadField> {
    let name = tool.name;
    let is_sign = |c: char| c.is_ascii_alphanumeric() || NAME_SIGNS.contains(c);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_sign) {
        let problem = format!(
            "is no name, expected 1 to {MAX_NAME_BYTES} letters, digits and signs of {NAME_SIGNS}"
        );
        return Err(bad(&name, &problem));
    }
    let parameters = match tool.parameters.as_str() {
        "" => json!({ "type": "object", "properties": {} }),
        text => serde_json::from_str(text)
            .map_err(|error| bad(&name, &format!("its parameters are no JSON: {error}")))?,
    };
    let kind = match &parameters {
        Value::Object(schema) => schema.get("type"),
        _ => return Err(bad(&name, "its parameters are no object")),
    };
    if kind.is_some_and(|kind| kind != "object") {
        let problem =
            "its parameters are of another type than object, which a tool's arguments are";
        return Err(bad(&name, problem));
    }
    Ok(CalledTool {
        name,
        description: tool.description,
        parameters,
        strict: tool.strict,
        is_free: false,
    })
}

fn bad(name: &str, problem: &str) -> BadField {
    BadField::new("tools", format!("'{}' {problem}", beginning(name)))
}

/// Returns the beginning of a name of any length.
fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}
