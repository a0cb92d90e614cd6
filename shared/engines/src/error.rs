//! Why an engine gave no rows.

use std::time::Duration;

use speculation::certificate::BadRow;

/// Why an engine gave no rows. No message holds tokens or text of a request or of an answer.
#[derive(Debug, thiserror::Error)]
pub enum ScoringError {
    /// The settings make no connection.
    #[error("{field}: {problem}")]
    Settings {
        /// The setting.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// What is asked for makes no request.
    #[error("cannot ask the engine: {0}")]
    Request(&'static str),
    /// The engine cannot give what is asked for.
    #[error("the engine does not offer {0}")]
    NotOffered(&'static str),
    /// The engine cannot be reached, or the connection broke.
    #[error("the engine cannot be reached: {0}")]
    Unreachable(String),
    /// There was no whole answer within the time allowed.
    #[error("the engine gave no answer within {0:?}")]
    Late(Duration),
    /// The engine was too busy, or not up, for as long as there was time.
    #[error("the engine answered {status} until the time was up, {tries} times")]
    Busy {
        /// HTTP status of the last answer.
        status: u16,
        /// Requests made.
        tries: u32,
    },
    /// The engine refused the request.
    #[error("the engine answered {0}")]
    Status(u16),
    /// The answer is longer than an answer to what was asked can be.
    #[error("the engine's answer is longer than {0} bytes")]
    TooLong(u64),
    /// The answer is no JSON, or not of the shape expected.
    #[error("the engine's answer is malformed in line {line}, column {column}: {kind}")]
    Malformed {
        /// Line of the answer, from 1 on.
        line: usize,
        /// Column in bytes.
        column: usize,
        /// What kind of fault it is.
        kind: &'static str,
    },
    /// A part of the answer has another length than what was asked for.
    #[error("the engine's answer has {found} {what}, expected {expected}")]
    Count {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many were expected.
        expected: usize,
    },
    /// The engine's model is another one than ours.
    #[error(
        "the engine's rows have {found} tokens, those of the model named here {expected}: name the model that the engine \
         serves"
    )]
    Rows {
        /// Length of its rows.
        found: usize,
        /// Length of those of our model.
        expected: usize,
    },
    /// A part of the answer is missing, or stands where none should.
    #[error("the engine's answer {0}")]
    Answer(&'static str),
    /// A row is no part of a row of log probabilities.
    #[error("the engine's answer, sequence {sequence}, row {row}: {source}")]
    Row {
        /// Index of the sequence in the request.
        sequence: usize,
        /// Index of the row within it.
        row: usize,
        /// What is wrong with it.
        source: BadRow,
    },
}

impl ScoringError {
    /// Returns the fault of a body that could not be read as JSON.
    pub(crate) fn malformed(error: &serde_json::Error) -> Self {
        let kind = match error.classify() {
            serde_json::error::Category::Io => "it cannot be read",
            serde_json::error::Category::Syntax => "it is no JSON",
            serde_json::error::Category::Data => "it has another shape",
            serde_json::error::Category::Eof => "it ends early",
        };
        Self::Malformed {
            line: error.line(),
            column: error.column(),
            kind,
        }
    }
}
