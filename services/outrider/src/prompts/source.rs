//! A file of prompts, read line by line or as one list.

use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use coordinator::limits::MAX_REQUEST_BYTES;
use net::bounded::{self, MAX_LIST_BYTES};
use serde_json::Value;

use super::example::{Example, Form};
use super::record::FieldNames;

/// What holds prompts, and by which names its faults are told.
#[derive(Clone, Debug)]
pub struct PromptSource<'a> {
    flag: &'a str,
    name: String,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// A JSON object a line, or one list of them.
    Json(String),
    /// A prompt a line, as it stands.
    Plain(String),
    /// Objects of a format that others read.
    Objects(Vec<Value>),
}

impl<'a> PromptSource<'a> {
    /// Returns prompts that are compiled in, one JSON object a line.
    pub fn built_in(flag: &'a str, name: &str, text: &str) -> Self {
        Self {
            flag,
            name: name.to_owned(),
            content: Content::Json(text.to_owned()),
        }
    }

    /// Returns the prompts that JSON objects hold, which were read from what is called `name`.
    pub fn of_objects(flag: &'a str, name: String, objects: Vec<Value>) -> Self {
        Self {
            flag,
            name,
            content: Content::Objects(objects),
        }
    }

    /// Reads the file that `flag` names: JSON lines, a list in JSON, or where it ends with `.txt` a prompt a line.
    ///
    /// # Errors
    /// If it cannot be read, or has more than 64 MiB.
    pub fn of_file(flag: &'a str, file: &Path) -> anyhow::Result<Self> {
        let name = file.display().to_string();
        let text = bounded::text_file(file, MAX_LIST_BYTES)
            .with_context(|| format!("{flag}: {name} cannot be read"))?;
        let ending = file.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        let content = if ending.is_some_and(|ending| ending == "txt") {
            Content::Plain(text)
        } else {
            Content::Json(text)
        };
        Ok(Self {
            flag,
            name,
            content,
        })
    }

    /// Returns all examples in their order, each recognised by its own fields. Conversations in which no user speaks are
    /// left out.
    ///
    /// # Errors
    /// Names the file, and the line or item that is no JSON, or of no known form, or longer than a request; and if there is
    /// none.
    pub fn examples(&self, names: &FieldNames) -> anyhow::Result<Vec<Example>> {
        let examples = match &self.content {
            Content::Plain(text) => self.plain(text)?,
            Content::Json(text) if text.trim_start().starts_with('[') => {
                let items: Vec<Value> = serde_json::from_str(text)
                    .with_context(|| format!("{}: {}", self.flag, self.name))?;
                self.listed(&items, names)?
            }
            Content::Json(text) => self.lines(text, names)?,
            Content::Objects(items) => self.listed(items, names)?,
        };
        let Self { flag, name, .. } = self;
        ensure!(!examples.is_empty(), "{flag}: there is none in {name}");
        Ok(examples)
    }

    fn plain(&self, text: &str) -> anyhow::Result<Vec<Example>> {
        let example = |(number, line): (usize, &str)| {
            let example = Example {
                id: None,
                kind: Form::Text.kind().to_owned(),
                text: line.to_owned(),
                references: Vec::new(),
                form: Form::Text,
            };
            self.fitting(example, ("line", number))
        };
        numbered(text).map(example).collect()
    }

    fn lines(&self, text: &str, names: &FieldNames) -> anyhow::Result<Vec<Example>> {
        let mut examples = Vec::new();
        for (number, line) in numbered(text) {
            let value: Value = serde_json::from_str(line).map_err(|error| {
                // It counts lines of its own: this one is all it saw.
                let (problem, column) = (without_place(&error), error.column());
                let Self { flag, name, .. } = self;
                anyhow!("{flag}: {name}, line {number}, column {column}: {problem}")
            })?;
            examples.extend(self.example(&value, names, ("line", number))?);
        }
        Ok(examples)
    }

    fn listed(&self, items: &[Value], names: &FieldNames) -> anyhow::Result<Vec<Example>> {
        let mut examples = Vec::new();
        for (number, item) in (1..).zip(items) {
            examples.extend(self.example(item, names, ("item", number))?);
        }
        Ok(examples)
    }

    fn example(
        &self,
        value: &Value,
        names: &FieldNames,
        place: (&str, usize),
    ) -> anyhow::Result<Option<Example>> {
        let read = names.example(value);
        let read = read.map_err(|problem| anyhow!("{}: {problem}", self.place(place)))?;
        read.map(|example| self.fitting(example, place)).transpose()
    }

    fn fitting(&self, example: Example, place: (&str, usize)) -> anyhow::Result<Example> {
        let found = example.text.len();
        ensure!(
            found <= MAX_REQUEST_BYTES,
            "{}: a prompt of {found} bytes, a coordinator takes {MAX_REQUEST_BYTES}",
            self.place(place)
        );
        Ok(example)
    }

    fn place(&self, (unit, number): (&str, usize)) -> String {
        format!("{}: {}, {unit} {number}", self.flag, self.name)
    }
}

/// Returns the lines that are not blank, with their numbers.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    lines.filter(|(_, line)| !line.trim().is_empty())
}

/// Returns what `error` says, without where.
fn without_place(error: &serde_json::Error) -> String {
    let reported = error.to_string();
    let problem = reported.rsplit_once(" at line ");
    problem.map_or_else(|| reported.clone(), |(problem, _)| problem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a file of this ending holds.
    fn read(ending: &str, text: &str) -> Result<Vec<Example>, String> {
        let file = tempfile::Builder::new().suffix(ending).tempfile();
        let file = file.expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let source = PromptSource::of_file("--prompts", file.path());
        let examples = source.and_then(|source| source.examples(&FieldNames::default()));
        examples.map_err(|error| format!("{error:#}"))
    }

    fn texts(examples: &[Example]) -> Vec<&str> {
        examples.iter().map(|example| &example.text[..]).collect()
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = read(".jsonl", "{\"prompt\": \"a\"}\nnonsense\n").expect_err("refused");
        assert!(error.contains("line 2, column 2: expected"), "{error}");
        assert_eq!(error.matches("line").count(), 1, "{error}");
        let error =
            read(".jsonl", "{\"prompt\": \"a\"}\n\n{\"text\": \"b\"}").expect_err("refused");
        assert!(error.contains("line 3: its fields are 'text'"), "{error}");
        let error = read(".json", "[{\"prompt\": \"a\"}, 5]").expect_err("refused");
        assert!(error.contains("item 2: a number"), "{error}");
        let error = read(".json", "[{\"prompt\": \"a\"}").expect_err("refused");
        assert!(
            error.starts_with("--prompts: ") && error.contains("EOF"),
            "{error}"
        );
    }

    #[test]
    fn each_line_is_of_a_form_of_its_own() {
        let lines = "{\"prompt\": \"a\"}\n{\"turns\": [\"b\"]}\n{\"conversations\": []}\n";
        let examples = read("", lines).expect("read");
        assert_eq!(texts(&examples), ["a", "b"]);
        assert_eq!(examples[1].form, Form::SpecBench);
        let listed = read(".json", "\n[{\"prompt\": \"a\"},\n{\"turns\": [\"b\"]}]");
        assert_eq!(listed.expect("read"), examples);
    }

    #[test]
    fn plain_text_is_a_prompt_a_line() {
        let examples = read(".TXT", "Once upon\n\n  [there] was \r\n").expect("read");
        assert_eq!(texts(&examples), ["Once upon", "  [there] was "]);
        assert_eq!(
            (examples[0].form, &examples[0].kind[..]),
            (Form::Text, "text")
        );
        let error = read(".txt", "\n \n").expect_err("refused");
        assert!(error.starts_with("--prompts: there is none in "), "{error}");
    }

    #[test]
    fn a_prompt_that_no_request_holds_and_a_file_without_an_end_are_named() {
        let prompt = "y".repeat(MAX_REQUEST_BYTES + 1);
        let lines = format!("{{\"prompt\": \"a\"}}\n{{\"prompt\": \"{prompt}\"}}\n");
        let error = read("", &lines).expect_err("refused");
        assert!(error.ends_with("line 2: a prompt of 4194305 bytes, a coordinator takes 4194304"));
        let endless = Path::new("/dev/zero");
        if endless.exists() {
            let error = PromptSource::of_file("--prompts", endless).expect_err("refused");
            let error = format!("{error:#}");
            let said = "--prompts: /dev/zero cannot be read: more than 64 MiB";
            assert!(error.starts_with(said), "{error}");
        }
    }
}
