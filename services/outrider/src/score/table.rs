//! Scores for people, a line a position.

use std::io::Write;

use model::tokenizer::Tokenizer;
use speculation::TokenId;

use super::Report;
use super::scoring::{Likely, Position, Summary};

/// Writes lines, with the tokens' text where there is a tokenizer.
pub(super) struct Table<'a, W> {
    pub(super) out: &'a mut W,
    pub(super) tokenizer: Option<Tokenizer>,
}

impl<W: Write> Table<'_, W> {
    /// A token as it is written, in quotes; its id where that is all there is.
    fn text(&self, id: TokenId) -> String {
        let Some(tokenizer) = &self.tokenizer else {
            return id.to_string();
        };
        // Special tokens, and ids beyond the tokenizer's, have no text.
        match tokenizer.decode(&[id], false) {
            Ok(text) if !text.is_empty() => format!("{text:?}"),
            _ => format!("<{id}>"),
        }
    }

    fn likely(&self, likely: &Likely) -> String {
        format!("{} {:.2}", self.text(likely.token_id), likely.logprob)
    }
}

impl<W: Write> Report for Table<'_, W> {
    fn position(&mut self, at: usize, position: &Position) -> anyhow::Result<()> {
        if at == 0 {
            writeln!(
                self.out,
                "position      id  {:<16}  logprob  most likely next, ln of the probability",
                "token"
            )?;
        }
        let logprob = match position.logprob {
            Some(logprob) => format!("{logprob:.3}"),
            None => "-".to_owned(),
        };
        let next: Vec<_> = position.top.iter().map(|top| self.likely(top)).collect();
        let line = format!(
            "{:>8} {:>7}  {:<16} {logprob:>8}  {}",
            at,
            position.token_id,
            self.text(position.token_id),
            next.join("  ")
        );
        Ok(writeln!(self.out, "{}", line.trim_end())?)
    }

    fn end(&mut self, summary: Summary) -> anyhow::Result<()> {
        let Some(perplexity) = summary.perplexity() else {
            return Ok(writeln!(
                self.out,
                "no perplexity: one token has none before it"
            )?);
        };
        Ok(writeln!(
            self.out,
            "perplexity {perplexity:.4} over {} tokens, {:.4} nats a token",
            summary.tokens,
            -summary.logprob / summary.tokens as f64
        )?)
    }
}
