//! Scores as one JSON object, written as they come: with every token of a large vocabulary told at every
//! position it may be far larger than memory.

use std::io::Write;

use super::Report;
use super::scoring::{Position, Summary};

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
}
