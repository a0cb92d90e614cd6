//! Scores for people, a line a position.

use std::io::Write;

use model::tokenizer::Tokenizer;
use speculation::TokenId;

use super::Report;
use super::scoring::{Likely, Position, Summary};

/// Writes lines, with the tokens' text where there is a tokenizer.
pub(super) struct Table<'a, W> {
    out: &'a mut W,
    tokenizer: Option<Tokenizer>,
    positions: usize,
}

impl<'a, W: Write> Table<'a, W> {
    pub(super) fn new(out: &'a mut W, tokenizer: Option<Tokenizer>) -> Self {
        Self {
            out,
            tokenizer,
            positions: 0,
        }
    }

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
    fn position(&mut self, position: &Position) -> anyhow::Result<()> {
        if self.positions == 0 {
            let (index, id) = ("position", "id");
            let heads = [
                "token",
                "logprob",
                "most likely next, ln of the probability",
            ];
            let [token, logprob, next] = heads;
            writeln!(
                self.out,
                "{index:>8} {id:>7}  {token:<16} {logprob:>8}  {next}"
            )?;
        }
        let logprob = match position.logprob {
            Some(logprob) => format!("{logprob:.3}"),
            None => "-".to_owned(),
        };
        let next: Vec<_> = position.top.iter().map(|top| self.likely(top)).collect();
        let line = format!(
            "{:>8} {:>7}  {:<16} {logprob:>8}  {}",
            self.positions,
            position.token_id,
            self.text(position.token_id),
            next.join("  ")
        );
        self.positions += 1;
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

    fn fail(&mut self, error: anyhow::Error) -> anyhow::Error {
        error
    }
}
