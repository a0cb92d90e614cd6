//! A conversation through a pipe: each line is what the user says.

use std::io::{self, BufRead, Read};

use anyhow::{Context, ensure};
use coordinator::limits::MAX_REQUEST_BYTES;

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
        let next = tokio::task::spawn_blocking(|| InputLine::read(&mut io::stdin().lock()));
        let line = match next.await?.context("standard input cannot be read")? {
            InputLine::Text(line) if line.trim().is_empty() => continue,
            InputLine::Text(line) => line,
            InputLine::NoText => {
                anstream::eprintln!("a line that is not UTF-8 was left out");
                continue;
            }
            InputLine::TooLong => {
                unanswered += 1;
                anstream::eprintln!("a line of more than {MAX_REQUEST_BYTES} bytes was left out");
                continue;
            }
            InputLine::End => break,
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

/// Returns whether a shorter line would do.
fn is_of_line(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<TooLong>()
        .is_some_and(|problem| problem.to_string().starts_with("prompt:"))
}

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
enum InputLine {
    /// Its text, without its end.
    Text(String),
    /// It is not UTF-8.
    NoText,
    /// No request could hold it.
    TooLong,
    /// There is none left.
    End,
}

impl InputLine {
    /// Reads the next line, to its end whatever is in it, and holds no more of it than a request does.
    fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let most = MAX_REQUEST_BYTES as u64;
        let mut bytes = Vec::new();
        // Its end is no part of it.
        let read = input
            .by_ref()
            .take(most + 1)
            .read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(Self::End);
        }
        if bytes.len() as u64 > most && !bytes.ends_with(b"\n") {
            input.skip_until(b'\n')?;
            return Ok(Self::TooLong);
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
    fn a_line_that_no_request_holds_does_not_take_others_with_it() {
        let long = vec![b'y'; MAX_REQUEST_BYTES + 1];
        let whole = [&long[1..], b"\n"].concat();
        let input = [&long[..], b"yy\nshort\n", &whole, &long].concat();
        let mut input = &input[..];
        let mut read = || InputLine::read(&mut input).expect("bytes");
        assert_eq!(read(), InputLine::TooLong);
        assert_eq!(read(), InputLine::Text("short".to_owned()));
        assert!(matches!(read(), InputLine::Text(text) if text.len() == MAX_REQUEST_BYTES));
        assert_eq!(read(), InputLine::TooLong);
        assert_eq!(read(), InputLine::End);
    }

    #[test]
    fn a_line_that_is_no_text_does_not_take_others_with_it() {
        let mut input = &b"one\r\n\xff\xfe two\nthree"[..];
        let mut lines = Vec::new();
        loop {
            match InputLine::read(&mut input).expect("bytes") {
                InputLine::End => break,
                line => lines.push(line),
            }
        }
        let text = |text: &str| InputLine::Text(text.to_owned());
        assert_eq!(lines, [text("one"), InputLine::NoText, text("three")]);
    }
}
