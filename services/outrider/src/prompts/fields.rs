//! Fields of a JSON object, checked.

use serde_json::{Map, Value};

/// The fields of one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Returns whether there is a field `name` that is not null.
    pub(super) fn has(self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Returns the field `name`, unless it is missing or null.
    pub(super) fn value(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns the text of `name`.
    ///
    /// # Errors
    /// If it is missing, or no text.
    pub(super) fn text(self, name: &str) -> Result<String, String> {
        let value = self
            .value(name)
            .ok_or_else(|| format!("there is no field '{name}'"))?;
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| format!("'{name}' is {}, expected a text", described(value)))
    }

    /// Returns the text, number or truth of `name` as a text; none if it is missing or null.
    ///
    /// # Errors
    /// If it is a list or an object.
    pub(super) fn label(self, name: &str) -> Result<Option<String>, String> {
        self.value(name)
            .map(|value| scalar(name, value))
            .transpose()
    }

    /// Returns the [`texts`] of `name`; none if it is missing or null.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn texts(self, name: &str) -> Result<Vec<String>, String> {
        let value = self.value(name);
        value.map_or_else(|| Ok(Vec::new()), |value| texts(name, value))
    }

    /// Returns the objects of the list `name`.
    ///
    /// # Errors
    /// If it is missing, or something else.
    pub(super) fn objects(self, name: &str) -> Result<Vec<Fields<'a>>, String> {
        let items = self.value(name).and_then(Value::as_array);
        let items = items.ok_or_else(|| format!("'{name}' is not there as a list"))?;
        let object = |item: &'a Value| item.as_object().map(Fields);
        let objects: Option<Vec<_>> = items.iter().map(object).collect();
        objects.ok_or_else(|| format!("'{name}' holds something that is no object"))
    }

    /// Returns the names of all fields, in quotes.
    pub(super) fn names(self) -> String {
        let names: Vec<_> = self.0.keys().map(|name| format!("'{name}'")).collect();
        names.join(", ")
    }
}

/// Returns the texts that `value`, of the field `name`, is: one or a list of them. A number counts as its digits.
///
/// # Errors
/// If it is something else.
pub(super) fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(items) => items.iter().map(|item| scalar(name, item)).collect(),
        value => Ok(vec![scalar(name, value)?]),
    }
}

fn scalar(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(format!(
            "'{name}' holds {}, expected a text",
            described(value)
        )),
    }
}

/// Returns what `value` is, in words.
pub(super) fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
