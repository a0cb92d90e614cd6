//! A file of tokens.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use subtle::ConstantTimeEq;
use tonic::metadata::{Ascii, MetadataValue};

use super::guard::{RateLimits, TokenHolder};
use crate::reload::{FileError, contents};

/// Shortest token accepted: what is shorter can be guessed. 16 characters of Base64 are 96 bits.
pub const MIN_TOKEN_CHARS: usize = 16;

/// Longest token, and longest name before one, in characters.
pub const MAX_TOKEN_CHARS: usize = 256;

/// What a line looks like.
const FORM: &str = "[NAME] TOKEN [requests=N] [rpm=N] [tpm=N]";

/// The tokens of a file, in its order; at least one.
pub(super) struct TokenFile {
    /// The key in section `auth`.
    pub(super) setting: &'static str,
    tokens: Vec<TokenEntry>,
}

/// A token, and whom it stands for.
struct TokenEntry {
    secret: String,
    holder: TokenHolder,
}

impl TokenFile {
    /// # Errors
    /// [`FileError`] naming the file and the line, never the token.
    pub(super) fn read(setting: &'static str, file: &Path) -> Result<Self, FileError> {
        let key = format!("auth.{setting}");
        let text = String::from_utf8(contents(&key, file)?);
        let text = text.map_err(|error| FileError::new(&key, file, error.to_string()))?;
        let mut tokens: Vec<TokenEntry> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault =
                |problem| FileError::new(&key, file, format!("line {}: {problem}", index + 1));
            let token = TokenEntry::parse(line).map_err(fault)?;
            if tokens.iter().any(|other| other.secret == token.secret) {
                return Err(fault("this token stands in an earlier line too".to_owned()));
            }
            tokens.push(token);
        }
        if tokens.is_empty() {
            let problem =
                "holds no token; write one a line, for example what `openssl rand -hex 32` prints";
            return Err(FileError::new(&key, file, problem));
        }
        Ok(Self { setting, tokens })
    }

    /// Returns who shows `shown`, if it is one of these tokens. How long it takes tells nothing of how much of a
    /// token was guessed.
    pub(super) fn find(&self, shown: &[u8]) -> Option<TokenHolder> {
        let mut found = None;
        for token in &self.tokens {
            if token.secret.as_bytes().ct_eq(shown).into() {
                found = Some(token.holder.clone());
            }
        }
        found
    }

    /// Returns the first token as a header shows it.
    pub(super) fn header(&self) -> Option<MetadataValue<Ascii>> {
        let token = self.tokens.first()?;
        let mut header: MetadataValue<Ascii> = format!("Bearer {}", token.secret).parse().ok()?;
        // HTTP/2 keeps it out of its compression table, and whoever prints the header sees no value.
        header.set_sensitive(true);
        Some(header)
    }
}

impl TokenEntry {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words: Vec<_> = line.split_whitespace().collect();
        let (max_requests, rates) = limits(&mut words)?;
        let (name, secret) = match words[..] {
            [secret] => (None, secret),
            [name, secret] => (Some(name), secret),
            [] => return Err(format!("no token, expected {FORM}")),
            _ => {
                return Err(format!(
                    "more than two words before the limits, expected {FORM}"
                ));
            }
        };
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the token has characters that are not visible ASCII".to_owned());
        }
        let found = secret.len();
        if !(MIN_TOKEN_CHARS..=MAX_TOKEN_CHARS).contains(&found) {
            return Err(format!(
                "a token of {found} characters, expected {MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS}"
            ));
        }
        if let Some(found) = name.map(str::len).filter(|&bytes| bytes > MAX_TOKEN_CHARS) {
            return Err(format!(
                "a name of {found} bytes, expected at most {MAX_TOKEN_CHARS}"
            ));
        }
        let mut hasher = DefaultHasher::new();
        secret.hash(&mut hasher);
        Ok(Self {
            secret: secret.to_owned(),
            holder: TokenHolder {
                tenant: name.map(Arc::from),
                token: hasher.finish(),
                max_requests,
                rates,
            },
        })
    }
}

/// Takes the limits off the end of a line's `words`. Returns the most requests under way, and how much may be used in a
/// minute.
///
/// # Errors
/// Says what is wrong with one of them, never what stands before it.
fn limits(words: &mut Vec<&str>) -> Result<(Option<NonZeroU32>, RateLimits), String> {
    let (mut max_requests, mut rates) = (None, RateLimits::default());
    while let Some((name, value)) = words.last().and_then(|word| word.split_once('=')) {
        let limit = match name {
            "requests" => &mut max_requests,
            "rpm" => &mut rates.requests,
            "tpm" => &mut rates.tokens,
            _ => break,
        };
        let number = value.parse().map_err(|_| {
            format!(
                "{name}={value} is no limit, expected a whole number from 1 to {}",
                u32::MAX
            )
        })?;
        if limit.replace(number).is_some() {
            return Err(format!("{name}= stands there twice"));
        }
        words.pop();
    }
    Ok((max_requests, rates))
}
