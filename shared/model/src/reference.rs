//! How a model is named: `embedded:ROLE`, a local path, or a repository of the hub.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Longest name of a repository, as the hub has it.
const MAX_NAME_BYTES: usize = 96;
/// Longest revision or file name.
const MAX_PART_BYTES: usize = 255;

/// Where a model is to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelReference {
    /// Compiled in, by role.
    Embedded(String),
    /// A checkpoint folder or a GGUF file.
    Local(PathBuf),
    /// A repository of the hub.
    Hub(HubReference),
}

/// A model of the hub: `org/name[@revision][:file]`.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display("{repo}@{revision}{}", file.as_ref().map_or_else(String::new, |file| format!(":{file}")))]
pub struct HubReference {
    /// `org/name`.
    pub repo: String,
    /// Branch, tag or commit.
    pub revision: String,
    /// The one file wanted, a GGUF file; without it the whole checkpoint.
    pub file: Option<String>,
}

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{part} {found:?} {problem}; expected org/name[@revision][:file.gguf]")]
pub struct BadReference {
    /// Which part.
    pub part: &'static str,
    /// What was given.
    pub found: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl ModelReference {
    /// Reads a model's name. What exists on this machine wins over the hub.
    ///
    /// # Errors
    /// If it can only be a name of the hub, and is none.
    pub fn parse(text: &str) -> Result<Self, BadReference> {
        if let Some(role) = text.strip_prefix("embedded:") {
            return Ok(Self::Embedded(role.to_owned()));
        }
        let path = Path::new(text);
        if path.exists() || !may_be_of_the_hub(text) {
            return Ok(Self::Local(path.to_owned()));
        }
        text.parse().map(Self::Hub)
    }
}

/// Whether `text` has the outline of `org/name`, rather than of a path.
fn may_be_of_the_hub(text: &str) -> bool {
    let repo = text.split(['@', ':']).next().unwrap_or_default();
    let is_path = text.starts_with(['/', '.', '~']) || text.contains('\\');
    let is_file = repo == text && has_ending(text, "gguf");
    !is_path && !is_file && repo.matches('/').count() == 1
}

/// Whether the name of a file ends so, in whatever case.
pub(crate) fn has_ending(name: impl AsRef<Path>, ending: &str) -> bool {
    let found = name.as_ref().extension();
    found.is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

impl std::str::FromStr for HubReference {
    type Err = BadReference;

    fn from_str(text: &str) -> Result<Self, BadReference> {
        let (left, file) = match text.split_once(':') {
            Some((left, file)) => (left, Some(file)),
            None => (text, None),
        };
        let (repo, revision) = left.split_once('@').unwrap_or((left, "main"));
        let bad = |part, found: &str, problem| BadReference {
            part,
            found: found.to_owned(),
            problem,
        };
        check_repo(repo).map_err(|problem| bad("model", repo, problem))?;
        check_path(revision).map_err(|problem| bad("revision", revision, problem))?;
        if let Some(file) = file {
            check_path(file).map_err(|problem| bad("file", file, problem))?;
            if !has_ending(file, "gguf") {
                let problem = "is no .gguf file; leave it out for a checkpoint";
                return Err(bad("file", file, problem));
            }
        }
        Ok(Self {
            repo: repo.to_owned(),
            revision: revision.to_owned(),
            file: file.map(str::to_owned),
        })
    }
}

/// Checks a repository's name by the hub's own rules, which leave nothing that could climb out of a
/// folder.
fn check_repo(repo: &str) -> Result<(), &'static str> {
    if repo.len() > MAX_NAME_BYTES {
        return Err("is longer than 96 bytes");
    }
    let parts: Vec<&str> = repo.split('/').collect();
    if parts.len() != 2 || parts.iter().any(|part| part.is_empty()) {
        return Err("is not of the form org/name");
    }
    if repo.contains("..") || repo.contains("--") {
        return Err("contains \"..\" or \"--\"");
    }
    if parts
        .iter()
        .any(|part| part.starts_with(['.', '-']) || part.ends_with(['.', '-']))
    {
        return Err("has a part that begins or ends with '.' or '-'");
    }
    if !repo.bytes().all(|byte| is_plain(byte) || byte == b'/') {
        return Err("has characters other than letters, digits, '-', '_' and '.'");
    }
    Ok(())
}

/// Checks a revision or the name of a file in a repository: relative, and climbing nowhere.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("is empty");
    }
    if path.len() > MAX_PART_BYTES {
        return Err("is longer than 255 bytes");
    }
    if path.starts_with('/') {
        return Err("is an absolute path");
    }
    let climbs = |part: &str| part.is_empty() || part == "." || part == "..";
    if path.split('/').any(climbs) {
        return Err("has an empty part, \".\" or \"..\"");
    }
    if !path
        .bytes()
        .all(|byte| is_plain(byte) || matches!(byte, b'/' | b'+' | b'='))
    {
        return Err("has characters other than letters, digits and -_./+=");
    }
    Ok(())
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(repo: &str, revision: &str, file: Option<&str>) -> ModelReference {
        ModelReference::Hub(HubReference {
            repo: repo.to_owned(),
            revision: revision.to_owned(),
            file: file.map(str::to_owned),
        })
    }

    #[test]
    fn every_form_of_a_name_is_read() {
        for (text, expected) in [
            ("org/name", hub("org/name", "main", None)),
            ("org/name@v1.0", hub("org/name", "v1.0", None)),
            ("org/name@refs/pr/1", hub("org/name", "refs/pr/1", None)),
            (
                "org/name:sub/m.Q8_0.gguf",
                hub("org/name", "main", Some("sub/m.Q8_0.gguf")),
            ),
            (
                "org/name@dev:m.gguf",
                hub("org/name", "dev", Some("m.gguf")),
            ),
            (
                "embedded:draft",
                ModelReference::Embedded("draft".to_owned()),
            ),
            ("a/b/c", ModelReference::Local("a/b/c".into())),
            ("./org/name", ModelReference::Local("./org/name".into())),
            ("../name", ModelReference::Local("../name".into())),
            ("name", ModelReference::Local("name".into())),
            (
                "models/m.gguf",
                ModelReference::Local("models/m.gguf".into()),
            ),
        ] {
            assert_eq!(ModelReference::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_exists_here_wins_over_the_hub() {
        // Tests run in the package's folder.
        let expected = ModelReference::Local("src/hub".into());
        assert_eq!(ModelReference::parse("src/hub"), Ok(expected));
    }

    #[test]
    fn names_that_climb_or_are_odd_are_refused() {
        let long = format!("org/{}", "n".repeat(93));
        for (text, part, problem) in [
            ("org/..", "model", ".."),
            ("org/na--me", "model", "--"),
            ("org/-name", "model", "begins or ends"),
            ("org/na me", "model", "characters"),
            ("org/näme", "model", "characters"),
            ("org/name%2f", "model", "characters"),
            ("org/", "model", "org/name"),
            (long.as_str(), "model", "longer than 96"),
            ("org/name@", "revision", "empty"),
            ("org/name@../../x", "revision", ".."),
            ("org/name@/etc", "revision", "absolute"),
            ("org/name@a?b", "revision", "characters"),
            ("org/name:../x.gguf", "file", ".."),
            ("org/name:/x.gguf", "file", "absolute"),
            ("org/name:a//x.gguf", "file", "empty part"),
            ("org/name:a\nx.gguf", "file", "characters"),
            ("org/name:model.bin", "file", "no .gguf"),
        ] {
            let error = ModelReference::parse(text).expect_err(text);
            assert_eq!(error.part, part, "{text}");
            let reported = error.to_string();
            assert!(
                reported.contains(problem) && reported.contains("org/name[@revision]"),
                "{text}: {reported}"
            );
        }
    }
}
