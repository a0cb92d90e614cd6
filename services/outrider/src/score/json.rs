//! Scores as one JSON object, written as they come: with every token of a large vocabulary told at every
//! position it may be far larger than memory.

use std::io::Write;

use super::Report;
use super::scoring::{Position, Summary};
use crate::failure::one_line;
use crate::failure::{self, AlreadyReported};

/// Writes `{positions: [...], perplexity}`.
pub(super) struct Json<'a, W> {
    pub(super) out: &'a mut W,
    /// Whether the object was begun.
    pub(super) is_begun: bool,
}

impl<W: Write> Report for Json<'_, W> {
    fn position(&mut self, _: usize, position: &Position) -> anyhow::Result<()> {
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        let before = if is_begun { "," } else { "{\"positions\":[" };
        self.out.write_all(before.as_bytes())?;
        Ok(serde_json::to_writer(&mut *self.out, position)?)
    }

    fn end(&mut self, summary: Summary) -> anyhow::Result<()> {
        let perplexity = serde_json::to_string(&summary.perplexity())?;
        Ok(writeln!(self.out, "],\"perplexity\":{perplexity}}}")?)
    }

    fn fail(&mut self, error: anyhow::Error) -> anyhow::Error {
        if !self.is_begun {
            return error;
        }
        // The object that was begun tells it, without its opening brace.
        let rest = &failure::object(&one_line(&error))[1..];
        match writeln!(self.out, "],{rest}") {
            Ok(()) => AlreadyReported(error).into(),
            Err(_) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn an_object_that_was_begun_ends_with_the_error() {
        let mut out = Vec::new();
        let mut json = Json {
            out: &mut out,
            is_begun: false,
        };
        let untouched = json.fail(anyhow::anyhow!("at once"));
        assert!(!untouched.is::<AlreadyReported>());
        let position = Position {
            token_id: 7,
            logprob: None,
            top: Vec::new(),
        };
        json.position(0, &position).expect("written");
        assert!(
            json.fail(anyhow::anyhow!("too late"))
                .is::<AlreadyReported>()
        );
        let reported: Value = serde_json::from_slice(&out).expect("one object");
        assert_eq!(reported["positions"][0]["token_id"], 7);
        assert_eq!(reported["error"]["message"], "too late");
    }
}
