//! Reading files, pipes and devices up to a limit: what a user names may have no end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most that is read of a file of settings, tokens or certificates.
pub const MAX_SETTINGS_BYTES: u64 = 16 << 20;

/// The most that is read of a file with an entry a line.
pub const MAX_LIST_BYTES: u64 = 64 << 20;

/// The reason why a source cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system returned an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The source is longer than the limit.
    #[error("more than {}, the most that is read of it", in_words(*limit))]
    TooLong {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The source is not UTF-8.
    #[error("not UTF-8 from byte {valid} on")]
    NotText {
        /// Number of bytes before the first that is not UTF-8.
        valid: usize,
    },
}

/// Reads `source` to its end.
///
/// # Errors
/// [`ReadError::TooLong`] if it is longer than `limit` bytes; at most one byte beyond them is read.
pub fn bytes(source: impl Read, limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut read = Vec::new();
    source
        .take(limit.saturating_add(1))
        .read_to_end(&mut read)?;
    if read.len() as u64 > limit {
        return Err(ReadError::TooLong { limit });
    }
    Ok(read)
}

/// Reads `source` to its end, as text.
///
/// # Errors
/// Those of [`bytes()`], and [`ReadError::NotText`].
pub fn text(source: impl Read, limit: u64) -> Result<String, ReadError> {
    String::from_utf8(bytes(source, limit)?).map_err(|error| ReadError::NotText {
        valid: error.utf8_error().valid_up_to(),
    })
}

/// Reads the file at `path`.
///
/// # Errors
/// Those of [`bytes()`].
pub fn file(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    bytes(File::open(path)?, limit)
}

/// Reads the text file at `path`.
///
/// # Errors
/// Those of [`text`].
pub fn text_file(path: &Path, limit: u64) -> Result<String, ReadError> {
    text(File::open(path)?, limit)
}

/// Says how much `bytes` are, in mebibytes too where they are whole ones.
fn in_words(bytes: u64) -> String {
    match bytes >> 20 {
        mebibytes if mebibytes > 0 && bytes.is_multiple_of(1 << 20) => {
            format!("{mebibytes} MiB ({bytes} bytes)")
        }
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Endless, and counts what is taken of it.
    struct Endless(u64);

    impl Read for &mut Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'y');
            self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    #[test]
    fn what_has_no_end_is_given_up_a_byte_beyond_the_limit() {
        let mut endless = Endless(0);
        let refused = bytes(&mut endless, 4 << 20).unwrap_err().to_string();
        assert_eq!(
            refused,
            "more than 4 MiB (4194304 bytes), the most that is read of it"
        );
        assert!(endless.0 <= (4 << 20) + 1, "{}", endless.0);
    }

    #[test]
    fn what_is_as_long_as_the_limit_is_read() {
        assert_eq!(text(&b"four"[..], 4).unwrap(), "four");
        let refused = text(&b"fives"[..], 4).unwrap_err().to_string();
        assert!(refused.starts_with("more than 4 bytes"), "{refused}");
        assert_eq!(text(&b""[..], 0).unwrap(), "");
    }

    #[test]
    fn what_is_no_text_is_told_with_its_place() {
        let refused = text(&b"ab\xff"[..], 9).unwrap_err().to_string();
        assert_eq!(refused, "not UTF-8 from byte 2 on");
    }
}
