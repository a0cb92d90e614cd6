//! Why a configuration was refused.

use std::path::PathBuf;

use figment::error::{Actual, Kind, OneOf};
use net::bounded::ReadError;

use super::provenance::is_secret;

/// Why a configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file cannot be read.
    #[error("cannot read config file {}: {source}", path.display())]
    Unreadable {
        /// The file as it was named.
        path: PathBuf,
        /// What is wrong with it.
        source: ReadError,
    },

    /// The file's extension does not say which format it is in.
    #[error("config file {} must end in .toml or .json", .0.display())]
    Extension(PathBuf),

    /// The file is not the TOML or JSON its extension promises.
    #[error("config file {} is malformed: {reason}", path.display())]
    Malformed {
        /// The file as it was named.
        path: PathBuf,
        /// The parser's words, with line and column.
        reason: String,
    },

    /// A layer that must be a map is something else.
    #[error("configuration from {origin} is a {found}, not a map")]
    NotAMap {
        /// The layer.
        origin: String,
        /// What it is instead.
        found: String,
    },

    /// A variable with our prefix has an empty section or key in its name.
    #[error("environment variable {0} names no key; write OUTRIDER__SECTION__KEY")]
    Nameless(String),

    /// A variable's value is not UTF-8.
    #[error("environment variable {0} is not valid UTF-8")]
    NotUnicode(String),

    /// A key that the configuration does not have.
    #[error("unknown key {key} from {origin}{hint}; valid keys there are {valid}")]
    UnknownKey {
        /// The whole key, `section.key`.
        key: String,
        /// The file, variable or flag that gave it.
        origin: String,
        /// The keys that exist in that section.
        valid: String,
        /// The one among them that was meant, it seems.
        hint: String,
    },

    /// A value of the wrong type, or out of its range.
    #[error("{key} from {origin}: {reason}")]
    Invalid {
        /// The whole key, `section.key`.
        key: String,
        /// The file, variable or flag that gave it.
        origin: String,
        /// What was found and what was expected.
        reason: String,
    },
}

impl ConfigError {
    /// Returns the whole key of the setting at fault, `section.key`; empty where a whole layer is.
    pub fn key(&self) -> &str {
        match self {
            Self::UnknownKey { key, .. } | Self::Invalid { key, .. } => key,
            _ => "",
        }
    }

    pub(super) fn from_figment(error: figment::Error) -> Self {
        let key = error.path.join(".");
        let origin = match &error.metadata {
            Some(metadata) => metadata.name.to_string(),
            None => "the layers together".to_owned(),
        };
        match error.kind {
            Kind::UnknownField(name, valid) => Self::UnknownKey {
                key,
                origin,
                hint: did_you_mean(&name, valid.iter().copied()),
                valid: OneOf(valid).to_string(),
            },
            kind => Self::Invalid {
                // Serde quotes the value it did not like; a secret must not reach the log that way.
                reason: if is_secret(&key) {
                    "the value does not fit (not shown: it is a secret)".to_owned()
                } else {
                    reason(&kind)
                },
                key,
                origin,
            },
        }
    }
}

/// Says what was found and what was expected, in the words of those who write configurations.
fn reason(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            format!(
                "found {}, expected {}",
                found_in_words(found),
                in_words(expected)
            )
        }
        Kind::InvalidLength(found, expected) => {
            format!("found {found} items, expected {}", in_words(expected))
        }
        Kind::ISizeOutOfRange(found) => format!("{found} is out of the range of whole numbers"),
        Kind::USizeOutOfRange(found) => format!("{found} is out of the range of whole numbers"),
        Kind::UnknownVariant(found, valid) => format!("found `{found}`, expected {}", OneOf(valid)),
        other => other.to_string(),
    }
}

/// Returns a value as whoever wrote it would call it; figment names its type as Rust does.
fn found_in_words(found: &Actual) -> String {
    match found {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        Actual::Str(text) => format!("the text {text:?}"),
        Actual::Unit | Actual::Option => "nothing".to_owned(),
        other => other.to_string(),
    }
}

/// Returns what is expected as whoever writes it would call it; serde names types as Rust does.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "f32" | "f64" => "a number",
        "i8" => "a whole number from -128 to 127",
        "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a boolean" => "true or false",
        "a string" | "a character" => "a text",
        "a map" => "a table of settings, { key = value }",
        "a sequence" => "a list, [a, b]",
        "a nonzero u8" => "a whole number from 1 to 255",
        "a nonzero u16" => "a whole number from 1 to 65535",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        section if section.starts_with("struct ") => "a table of settings, { key = value }",
        number if number.starts_with("a nonzero ") => "a whole number, 1 or more",
        other => other,
    }
}

/// Names more different than this are other words.
const MOST_EDITS: usize = 2;

/// Names of more bytes are no slips: no name that is known is nearly as long, and the time to compare grows with its
/// length.
const MAX_NAME_BYTES: usize = 64;

/// Returns a question whether the one of `known` was meant that `name` is nearest to, as a part of an error; empty if
/// none is near, or the name is too long to be compared.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if name.len() > MAX_NAME_BYTES {
        return String::new();
    }
    let edits = |it: &&str| strsim::damerau_levenshtein(name, it);
    let near = known.into_iter().min_by_key(edits).filter(|it| {
        let edits = edits(it);
        edits <= MOST_EDITS && 2 * edits < it.len()
    });
    near.map_or_else(String::new, |it| format!(", did you mean `{it}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_slip_or_two_are_meant() {
        let known = ["draft_len", "draft_cap", "n"];
        assert_eq!(
            did_you_mean("draft_lenn", known),
            ", did you mean `draft_len`?"
        );
        assert_eq!(
            did_you_mean("darft_cap", known),
            ", did you mean `draft_cap`?"
        );
        for other in ["temperature", "m", "draft", ""] {
            assert_eq!(did_you_mean(other, known), "", "{other}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_compared_with_none() {
        let known = "k".repeat(MAX_NAME_BYTES);
        let near = &known[1..];
        assert_ne!(did_you_mean(near, [known.as_str()]), "");
        assert_eq!(did_you_mean(&format!("{known}k"), [known.as_str()]), "");
        // Quadratic in its length, this would take minutes.
        assert_eq!(
            did_you_mean(&"k".repeat(16 << 20), [known.as_str(); 100]),
            ""
        );
    }
}
