//! How far work on a model is that takes a while, for whoever watches it.

mod lines;

pub use lines::Lines;

use std::fmt;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A file comes from the hub.
    Downloading,
    /// Weights are read and brought to the format they are computed in.
    Loading,
    /// A file is written.
    Writing,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Downloading => "downloading",
            Self::Loading => "loading",
            Self::Writing => "writing",
        })
    }
}

/// How far it is. `done_bytes` never goes back but where a download must begin anew, and is `total_bytes` once,
/// when the work is done; of work that fails, there is nothing more to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is done.
    pub work: Work,
    /// The file or the model it is done on.
    pub name: &'a str,
    /// Bytes that are done.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

impl Progress<'_> {
    /// Whether the work is done.
    pub fn is_done(&self) -> bool {
        self.done_bytes == self.total_bytes
    }

    /// How much of it is done, of 100.
    pub fn percent(&self) -> u64 {
        self.done_bytes.saturating_mul(100) / self.total_bytes.max(1)
    }
}

/// Watches what is done on one model at a time.
pub trait Observer: fmt::Debug + Send + Sync {
    /// It is this far. Called often, from the thread that does the work.
    fn progress(&self, at: Progress<'_>);
    /// Something that a user should read, in one line.
    fn note(&self, line: &str);
}
