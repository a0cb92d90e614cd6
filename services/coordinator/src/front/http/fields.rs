//! The fields of a JSON object, read one by one, so that each error names its field and what is left over is refused.
//!
//! A body is never made into a tree of values, which takes a hundred times its bytes: fields are slices of it, and each is
//! read as the type that it must be.

mod values;

use std::fmt;

use ops::config::did_you_mean;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use wire::status::BadField;

use super::error::beginning;
use crate::limits::MAX_FIELDS;
pub(super) use values::{Readable, Seed, TextOrList, list, object};

/// Longest piece of a request that an error quotes, in bytes.
const MAX_QUOTED: usize = 160;

/// Most bytes of JSON of a value that [`JsonFields::only`] compares with the neutral ones.
const MAX_NEUTRAL: usize = 256;

/// The fields of an object that were not read yet.
pub(super) struct JsonFields<'a> {
    /// Where the object stands in the request, with a dot; empty at the top.
    path: String,
    left: Vec<(String, &'a RawValue)>,
    /// Names that were looked for.
    known: Vec<&'static str>,
}

/// The fields of an object. Of several fields with one name, the last counts.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields: Vec<(String, &RawValue)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    let before = fields.iter().position(|(before, _)| *before == name);
                    match before {
                        Some(at) => fields[at].1 = value,
                        None if fields.len() == MAX_FIELDS => {
                            let problem = format!("more than {MAX_FIELDS} fields");
                            return Err(A::Error::custom(problem));
                        }
                        None => fields.push((name, value)),
                    }
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Shortens `text` to what an error may quote.
pub(super) fn quoted(text: &str) -> String {
    beginning(text, MAX_QUOTED)
}

/// Returns serde's message about a value, shortened, and without the position in the JSON.
pub(super) fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let problem = text
        .rsplit_once(" at line ")
        .map_or(&text[..], |(problem, _)| problem);
    // serde's words for what JSON calls a list and an object.
    let problem = &problem
        .replacen("invalid type: sequence", "invalid type: list", 1)
        .replacen("invalid type: map", "invalid type: object", 1);
    // What was found comes first, and what was expected last.
    match problem.rsplit_once(", expected ") {
        Some((found, expected)) => format!("{}, expected {}", quoted(found), quoted(expected)),
        None => quoted(problem),
    }
}

impl<'a> JsonFields<'a> {
    /// Returns the fields of a request's body.
    ///
    /// # Errors
    /// If it is not one JSON object, or has too many fields.
    pub(super) fn of_body(body: &'a [u8]) -> Result<Self, BadField> {
        let Object(left) = serde_json::from_slice(body).map_err(|error| {
            let problem = quoted(&error.to_string());
            BadField::new("body", format!("not a JSON object: {problem}"))
        })?;
        Ok(Self::new(String::new(), left))
    }

    /// Returns the fields of an object that stands at `path` in the request.
    ///
    /// # Errors
    /// If it is none, or has too many fields.
    pub(super) fn within(path: &str, object: &'a RawValue) -> Result<Self, BadField> {
        let read = serde_json::from_str(object.get());
        let Object(left) = read.map_err(|error| BadField::new(path, problem(&error)))?;
        Ok(Self::new(format!("{path}."), left))
    }

    fn new(path: String, left: Vec<(String, &'a RawValue)>) -> Self {
        let known = Vec::new();
        Self { path, left, known }
    }

    /// Returns where the field `name` stands in the request.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}{}", self.path, quoted(name))
    }

    /// Returns the fault of the field `name`.
    pub(super) fn error(&self, name: &str, problem: impl Into<String>) -> BadField {
        BadField::new(self.path_of(name), problem)
    }

    /// Takes the JSON of the field `name`; none if it is not there, or null.
    pub(super) fn take_raw(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.known.push(name);
        #[cfg(test)]
        taken::note(&self.path, name);
        let at = self.left.iter().position(|(field, _)| field == name)?;
        let (_, value) = self.left.swap_remove(at);
        (value.get() != "null").then_some(value)
    }

    /// Returns the JSON of the field `name`, which stays to be read.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.left.iter().find(|(field, _)| field == name);
        found
            .map(|&(_, value)| value)
            .filter(|value| value.get() != "null")
    }

    /// Reads the JSON of the field `name` by `read`; none if it is not there, or null.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn take_by<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'a str) -> serde_json::Result<T>,
    ) -> Result<Option<T>, BadField> {
        let value = self.take_raw(name);
        let read = value.map(|value| read(value.get())).transpose();
        read.map_err(|error| self.error(name, problem(&error)))
    }

    /// Reads the field `name`; none if it is not there, or null.
    ///
    /// # Errors
    /// If it is of another type.
    pub(super) fn take<T: Readable<'a>>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, BadField> {
        self.take_by(name, T::of_json)
    }

    /// Returns whether the field `name` is there, and not null; whatever it holds.
    pub(super) fn has(&mut self, name: &'static str) -> bool {
        self.take_raw(name).is_some()
    }

    /// Reads the object `name`; none if it is not there, or null.
    ///
    /// # Errors
    /// If it is no object.
    pub(super) fn take_object(&mut self, name: &'static str) -> Result<Option<Self>, BadField> {
        let path = format!("{}{name}", self.path);
        let object = self.take_raw(name);
        object.map(|object| Self::within(&path, object)).transpose()
    }

    /// Reads a field that changes nothing here unless it holds another value than one of `neutral`.
    ///
    /// # Errors
    /// If it holds another value.
    pub(super) fn only(&mut self, name: &'static str, neutral: &[Value]) -> Result<(), BadField> {
        let Some(value) = self.take_raw(name) else {
            return Ok(());
        };
        let is_neutral = value.get().len() <= MAX_NEUTRAL
            && serde_json::from_str(value.get()).is_ok_and(|value: Value| neutral.contains(&value));
        if is_neutral {
            return Ok(());
        }
        let known: Vec<_> = neutral.iter().map(Value::to_string).collect();
        let problem = match &known[..] {
            [] => "not supported; leave it out".to_owned(),
            known => format!("not supported but as {}; leave it out", known.join(" or ")),
        };
        Err(self.error(name, problem))
    }

    /// Returns the names of the fields that nobody read, and that are not null.
    pub(super) fn names_left(&self) -> impl Iterator<Item = &str> {
        let left = self.left.iter().filter(|(_, value)| value.get() != "null");
        left.map(|(name, _)| name.as_str())
    }

    /// Ends the reading; null says nothing.
    ///
    /// # Errors
    /// Names a field that nobody read.
    pub(super) fn finish(self) -> Result<(), BadField> {
        let mut left = self.left.iter().filter(|(_, value)| value.get() != "null");
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
mod tests;
