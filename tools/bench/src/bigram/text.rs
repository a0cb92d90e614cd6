//! The documents of text files, one after the other.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

/// Plain text is cut into pieces of about this many bytes, at ends of lines: tokenising takes memory by
/// the piece.
const PIECE_BYTES: usize = 1 << 16;

/// The documents of several files.
pub(super) struct Documents {
    /// Files not begun yet, the next one last.
    left: Vec<PathBuf>,
    reading: Option<TextReading>,
}

struct TextReading {
    path: PathBuf,
    lines: BufReader<File>,
    number: usize,
    is_json: bool,
}

#[derive(Deserialize)]
struct TextRow {
    text: String,
}

impl Documents {
    /// The documents of `paths`, in order.
    ///
    /// # Errors
    /// Names the file that cannot be opened.
    pub(super) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        // All of them now: a misspelt name should not be found out after an hour.
        for path in paths {
            open(path)?;
        }
        Ok(Self {
            left: paths.iter().rev().cloned().collect(),
            reading: None,
        })
    }
}

impl Iterator for Documents {
    type Item = anyhow::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(reading) = &mut self.reading {
                let next = if reading.is_json {
                    reading.row()
                } else {
                    reading.piece()
                };
                if let Some(next) = next.transpose() {
                    return Some(next);
                }
            }
            let path = self.left.pop()?;
            match open(&path) {
                Ok(lines) => {
                    let is_json = path.extension().is_some_and(|ending| ending == "jsonl");
                    self.reading = Some(TextReading {
                        path,
                        lines,
                        number: 0,
                        is_json,
                    });
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl TextReading {
    /// The text of the next row that has one.
    fn row(&mut self) -> anyhow::Result<Option<String>> {
        let mut line = String::new();
        while self.line(&mut line)? > 0 {
            if !line.trim().is_empty() {
                let row: Result<TextRow, _> = serde_json::from_str(&line);
                let row = row.with_context(|| {
                    let (file, number) = (self.path.display(), self.number);
                    format!("--text: {file}, line {number}: expected a JSON object with a 'text'")
                })?;
                return Ok(Some(row.text));
            }
            line.clear();
        }
        Ok(None)
    }

    /// Whole lines of about a piece.
    fn piece(&mut self) -> anyhow::Result<Option<String>> {
        let mut piece = String::new();
        while piece.len() < PIECE_BYTES && self.line(&mut piece)? > 0 {}
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }

    /// Appends the next line; its bytes.
    fn line(&mut self, to: &mut String) -> anyhow::Result<usize> {
        self.number += 1;
        let read = self.lines.read_line(to);
        read.with_context(|| format!("--text: {} cannot be read as UTF-8", self.path.display()))
    }
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path);
    let file = file.with_context(|| format!("--text: {} cannot be read", path.display()))?;
    Ok(BufReader::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_pieces_are_documents() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let rows = file(
            "a.jsonl",
            "{\"text\": \"one\"}\n\n{\"text\": \"two\", \"kind\": 1}\n",
        );
        let line = "a line of text\n";
        let long = line.repeat(PIECE_BYTES / line.len() * 2);
        let plain = file("b.txt", &long);
        let bad = file("c.jsonl", "{\"text\": \"x\"}\n{\"words\": 1}\n");
        let read = |paths: &[PathBuf]| Documents::open(paths).and_then(Iterator::collect);
        let texts: Vec<String> = read(&[rows, plain]).expect("documents");
        assert_eq!(texts[..2], ["one", "two"]);
        assert_eq!(texts[2..].concat(), long);
        assert!(texts.len() > 3 && texts[2..].iter().all(|piece| piece.ends_with('\n')));
        let error = read(&[bad]).expect_err("no text").to_string();
        assert!(error.contains("c.jsonl, line 2"), "{error}");
        let missing = folder.path().join("d.txt");
        assert!(read(&[missing]).is_err());
    }
}
