//! The fields of a JSON object, read one by one, so that each error names its field and what is left over is refused.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use server::spelling::did_you_mean;
use wire::status::BadField;

/// The fields of an object that were not read yet.
pub(super) struct Fields {
    /// Where the object stands in the request, with a dot; empty at the top.
    path: String,
    left: Map<String, Value>,
    /// Names that were looked for.
    known: Vec<&'static str>,
}

impl Fields {
    /// The fields of a request's body.
    ///
    /// # Errors
    /// If it is not one JSON object.
    pub(super) fn of_body(body: &[u8]) -> Result<Self, BadField> {
        let left = serde_json::from_slice(body)
            .map_err(|error| BadField::new("body", format!("not a JSON object: {error}")))?;
        Ok(Self::within(String::new(), left))
    }

    /// The fields of an object that stands at `path` in the request, which ends in a dot.
    pub(super) fn within(path: String, left: Map<String, Value>) -> Self {
        let known = Vec::new();
        Self { path, left, known }
    }

    fn error(&self, name: &str, problem: impl Into<String>) -> BadField {
        BadField::new(format!("{}{name}", self.path), problem)
    }

    fn remove(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        #[cfg(test)]
        taken::note(&self.path, name);
        self.left.remove(name)
    }

    /// Reads the field `name`; none if it is not there, or null.
    ///
    /// # Errors
    /// If it is of another type.
    pub(super) fn take<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, BadField> {
        match self.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let read = serde_json::from_value(value).map(Some);
                read.map_err(|error| self.error(name, error.to_string()))
            }
        }
    }

    /// Reads the object `name`; none if it is not there, or null.
    ///
    /// # Errors
    /// If it is no object.
    pub(super) fn take_object(&mut self, name: &'static str) -> Result<Option<Self>, BadField> {
        let path = format!("{}{name}.", self.path);
        let left = self.take::<Map<String, Value>>(name)?;
        Ok(left.map(|left| Self::within(path, left)))
    }

    /// Reads a field that changes nothing here unless it holds another value than one of `neutral`.
    ///
    /// # Errors
    /// If it holds another value.
    pub(super) fn only(&mut self, name: &'static str, neutral: &[Value]) -> Result<(), BadField> {
        match self.remove(name) {
            None | Some(Value::Null) => Ok(()),
            Some(value) if neutral.contains(&value) => Ok(()),
            Some(_) => {
                let known: Vec<_> = neutral.iter().map(Value::to_string).collect();
                let problem = match &known[..] {
                    [] => "not supported; leave it out".to_owned(),
                    known => format!("not supported but as {}; leave it out", known.join(" or ")),
                };
                Err(self.error(name, problem))
            }
        }
    }

    /// Ends the reading; null says nothing.
    ///
    /// # Errors
    /// Names a field that nobody read.
    pub(super) fn finish(self) -> Result<(), BadField> {
        let mut left = self.left.iter().filter(|(_, value)| !value.is_null());
        match left.next() {
            None => Ok(()),
            Some((name, _)) => {
                let hint = did_you_mean(name, self.known.iter().copied());
                let problem = if hint.is_empty() {
                    "; leave it out"
                } else {
                    &hint
                };
                Err(self.error(name, format!("no such field is supported{problem}")))
            }
        }
    }
}

/// Records the names of the fields that a reader looks for, whether a request has them or not.
#[cfg(test)]
pub(super) mod taken {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static NAMES: RefCell<BTreeSet<String>> = RefCell::default();
    }

    pub(super) fn note(path: &str, name: &str) {
        NAMES.with_borrow_mut(|names| names.insert(format!("{path}{name}")));
    }

    /// Calls `read`; returns its result and the names of the fields that it looked for.
    pub(in crate::front::http) fn taken<T>(read: impl FnOnce() -> T) -> (T, BTreeSet<String>) {
        NAMES.take();
        let read = read();
        (read, NAMES.take())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: &Value) -> Fields {
        Fields::of_body(value.to_string().as_bytes()).expect("an object")
    }

    #[test]
    fn fields_are_read_once_and_the_rest_is_refused_by_name() {
        let mut read = fields(&json!({ "n": 2, "stop": null, "options": { "deep": 1 }, "x": [] }));
        assert_eq!(read.take::<u32>("n"), Ok(Some(2)));
        assert_eq!(read.take::<String>("stop"), Ok(None));
        assert_eq!(read.take::<String>("absent"), Ok(None));
        let options = read.take_object("options").expect("an object");
        let refused = options.expect("is there").finish().expect_err("deep");
        assert_eq!(refused.field, "options.deep");
        assert_eq!(read.finish().expect_err("x").field, "x");
        let mut read = fields(&json!({ "max_tokns": 2 }));
        assert_eq!(read.take::<u32>("max_tokens"), Ok(None));
        let refused = read.finish().expect_err("misspelt").to_string();
        assert!(refused.contains("did you mean `max_tokens`?"), "{refused}");
    }

    #[test]
    fn errors_name_field_and_type() {
        let mut read = fields(&json!({ "n": "two", "options": 3, "tools": [1], "format": "text" }));
        let wrong = read.take::<u32>("n").expect_err("a string").to_string();
        assert!(
            wrong.starts_with("n: ") && wrong.contains("\"two\""),
            "{wrong}"
        );
        assert!(read.take_object("options").is_err());
        assert_eq!(read.only("format", &[json!("text")]), Ok(()));
        let tools = read.only("tools", &[]).expect_err("tools");
        assert_eq!(tools.field, "tools");
        for body in ["", "[]", "3", "{", "{\"a\":1} x", "\u{0}"] {
            let refused = Fields::of_body(body.as_bytes());
            assert_eq!(refused.err().map(|bad| bad.field), Some("body".to_owned()));
        }
        let deep = "[".repeat(100_000);
        assert!(Fields::of_body(format!("{{\"a\":{deep}").as_bytes()).is_err());
    }
}
