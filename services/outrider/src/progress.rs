//! How far a long command is, on one line of a terminal. Nothing where stderr is no terminal.

mod bars;

pub use bars::Bars;

use std::io::{IsTerminal, Write};

/// Rewrites the line with `what`.
pub fn show(what: &str) -> std::io::Result<()> {
    let mut err = std::io::stderr();
    if !err.is_terminal() {
        return Ok(());
    }
    // Back to the first column, and what stood there before is wiped out.
    write!(err, "\r\u{1b}[2K{what}")?;
    err.flush()
}

/// Wipes the line out, for what is printed next.
pub fn clear() -> std::io::Result<()> {
    show("")
}
