//! A conversation through a pipe: each line is what the user says.

use std::io::{self, BufRead};

use anyhow::{Context, ensure};

use super::answering::Dialogue;
use crate::failure;
use crate::generate::TooLong;

/// Answers line by line until there is none left.
///
/// # Errors
/// What ended an answer; and at the end, if there were lines that were too long to be answered.
pub(super) async fn talk(mut dialogue: Dialogue) -> anyhow::Result<()> {
    let mut unanswered = 0;
    loop {
        // Reading blocks, and the services run in this process.
        let next = tokio::task::spawn_blocking(|| Line::read(&mut io::stdin().lock()));
        let line = match next.await?.context("standard input cannot be read")? {
            Line::Text(line) if line.trim().is_empty() => continue,
            Line::Text(line) => line,
            Line::NoText => {
                anstream::eprintln!("a line that is not UTF-8 was left out");
                continue;
            }
            Line::End => break,
        };
        match dialogue.say(&line).await {
            Ok(()) => {}
            Err(error) if is_of_line(&error) => {
                unanswered += 1;
                anstream::eprintln!("{}", failure::one_line(&error));
            }
            Err(error) => return Err(error),
        }
    }
    ensure!(
        unanswered == 0,
        "lines that were too long, and were not answered: {unanswered}"
    );
    Ok(())
}

/// Whether a shorter line would do.
fn is_of_line(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<TooLong>()
        .is_some_and(|problem| problem.to_string().starts_with("prompt:"))
}

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Its text, without its end.
    Text(String),
    /// It is not UTF-8.
    NoText,
    /// There is none left.
    End,
}

impl Line {
    /// Reads the next line, to its end whatever is in it.
    fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let mut bytes = Vec::new();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(Self::End);
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text.trim_end_matches(['\n', '\r']).to_owned()),
            Err(_) => Self::NoText,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_text_does_not_take_others_with_it() {
        let mut input = &b"one\r\n\xff\xfe two\nthree"[..];
        let mut lines = Vec::new();
        loop {
            match Line::read(&mut input).expect("bytes") {
                Line::End => break,
                line => lines.push(line),
            }
        }
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(lines, [text("one"), Line::NoText, text("three")]);
    }
}
