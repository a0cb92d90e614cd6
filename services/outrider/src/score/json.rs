//! Scores as one JSON object, written as they come: with every token of a large vocabulary told at every
//! position it may be far larger than memory.

use std::io::Write;

use super::Report;
use super::scoring::{Position, Summary};
use crate::failure::one_line;
use crate::failure::{self, Told};

/// Writes `{positions: [...], perplexity}`.
pub(super) struct Json<'a, W> {
    out: &'a mut W,
    positions: usize,
}

impl<'a, W: Write> Json<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        Self { out, positions: 0 }
    }
}

impl<W: Write> Report for Json<'_, W> {
    fn position(&mut self, position: &Position) -> anyhow::Result<()> {
        let before = if self.positions == 0 {
            "{\"positions\":["
        } else {
            ","
        };
        self.positions += 1;
        self.out.write_all(before.as_bytes())?;
        Ok(serde_json::to_writer(&mut *self.out, position)?)
    }

    fn end(&mut self, summary: Summary) -> anyhow::Result<()> {
        let perplexity = serde_json::to_string(&summary.perplexity())?;
        Ok(writeln!(self.out, "],\"perplexity\":{perplexity}}}")?)
    }

    fn fail(&mut self, error: anyhow::Error) -> anyhow::Error {
        if self.positions == 0 {
            return error;
        }
        // The object that was begun tells it, without its opening brace.
        let rest = &failure::object(&one_line(&error))[1..];
        match writeln!(self.out, "],{rest}") {
            Ok(()) => Told(error).into(),
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
        let mut json = Json::new(&mut out);
        let untouched = json.fail(anyhow::anyhow!("at once"));
        assert!(!untouched.is::<Told>());
        let position = Position {
            token_id: 7,
            logprob: None,
            top: Vec::new(),
        };
        json.position(&position).expect("written");
        assert!(json.fail(anyhow::anyhow!("too late")).is::<Told>());
        let told: Value = serde_json::from_slice(&out).expect("one object");
        assert_eq!(told["positions"][0]["token_id"], 7);
        assert_eq!(told["error"]["message"], "too late");
    }
}
