//! From a request's grammar to one that is followed.

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use speculation::constraint::GrammarSpec;
use wire::grammar::one_line;

use crate::Grammar;

/// Longest reason for a refusal, in characters.
const MOST_REASON: usize = 300;

/// Why a grammar cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    /// The list of texts is empty, or one of the texts is.
    #[error("no text to choose, expected at least one, and none that is empty")]
    NoChoice,
    /// The grammar does not parse, or uses a construct that is not supported.
    #[error("{0}")]
    Refused(String),
    /// No output satisfies the grammar.
    #[error("no text of this model's tokens satisfies it")]
    Unsatisfiable,
    /// The model's vocabulary cannot be used with grammars.
    #[error("{0}")]
    Vocabulary(String),
}

/// Reads `spec`.
///
/// # Errors
/// If it is no JSON, or chooses nothing.
pub(crate) fn top_level(spec: &GrammarSpec) -> Result<TopLevelGrammar, GrammarError> {
    match spec {
        GrammarSpec::JsonSchema(text) => {
            let schema = serde_json::from_str(text);
            let schema =
                schema.map_err(|error| GrammarError::Refused(format!("no JSON: {error}")))?;
            Ok(TopLevelGrammar::from_json_schema(one_line(schema)))
        }
        GrammarSpec::Regex(text) => Ok(TopLevelGrammar::from_regex(text)),
        GrammarSpec::Choice(texts) => {
            if texts.is_empty() || texts.iter().any(String::is_empty) {
                return Err(GrammarError::NoChoice);
            }
            let texts = texts.iter().map(|text| regex_syntax::escape(text));
            let texts: Vec<String> = texts.collect();
            Ok(TopLevelGrammar::from_regex(&texts.join("|")))
        }
        GrammarSpec::Lark(text) => Ok(TopLevelGrammar::from_lark(text.clone())),
    }
}

/// Compiles `top` for the vocabulary of `factory`.
///
/// # Errors
/// Says what cannot be followed of it.
pub(crate) fn compiled(
    factory: &ParserFactory,
    top: TopLevelGrammar,
) -> Result<Grammar, GrammarError> {
    let parser = factory
        .create_parser(top)
        .map_err(|error| refused(&error.to_string()))?;
    let mut matcher = Matcher::new(Ok(parser));
    let begins = matcher.compute_mask_or_eos();
    let begins = begins.map_err(|error| refused(&error.to_string()))?;
    if begins.is_zero() {
        return Err(GrammarError::Unsatisfiable);
    }
    Ok(Grammar::new(matcher))
}

fn refused(reason: &str) -> GrammarError {
    let reason = in_one_line(reason);
    if reason.starts_with(NO_TOKEN) {
        return GrammarError::Unsatisfiable;
    }
    GrammarError::Refused(reason)
}

/// The beginning of the library's error message for a state in which no token is allowed.
const NO_TOKEN: &str = "NoExtension";

/// Returns the library's error message in one line of at most [`MOST_REASON`] characters. Of the message of a panic in the
/// library, only the part before the backtrace is kept.
pub(crate) fn in_one_line(reason: &str) -> String {
    let own = reason
        .split(['<', '\n'])
        .next()
        .filter(|_| reason.starts_with("panic"));
    let words: Vec<&str> = own.unwrap_or(reason).split_whitespace().collect();
    let line = words.join(" ").replace("<non-verbose/>", "");
    line.trim().chars().take(MOST_REASON).collect()
}
