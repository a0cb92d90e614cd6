//! A matrix of single-precision numbers as NumPy stores it, in base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::checks;
use crate::error::ScoringError;

const MAGIC: &[u8] = b"\x93NUMPY";
/// More bytes than a header has.
const HEADER_BYTES: u64 = 1024;

/// Returns the most bytes that a matrix takes.
pub(super) fn longest(rows: usize, width: usize) -> u64 {
    (4 * rows as u64 * width as u64 + HEADER_BYTES) * 4 / 3 + 4
}

/// Returns the matrix, row by row, if it is one of single precision with so many rows and columns.
pub(super) fn decode(text: &str, rows: usize, width: usize) -> Result<Vec<f32>, ScoringError> {
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|_| ScoringError::Answer("holds a matrix that is no base64"))?;
    let header = header(&bytes).ok_or(ScoringError::Answer("holds a matrix without a header"))?;
    let (described, data) = header;
    let is_plain = described.contains("'descr': '<f4'")
        && described.contains("'fortran_order': False")
        && described.contains(&format!("'shape': ({rows}, {width})"));
    if !is_plain {
        let other = "holds a matrix of another shape or type";
        return Err(ScoringError::Answer(other));
    }
    checks::count("bytes in its matrix", data.len(), 4 * rows * width)?;
    let numbers = data
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes));
    Ok(numbers.collect())
}

/// Returns the description of the data, and the data.
fn header(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (version, rest) = rest.split_at_checked(2)?;
    let (len, rest) = match version[0] {
        1 => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            (u16::from_le_bytes(*len).into(), rest)
        }
        2 | 3 => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            (u32::from_le_bytes(*len), rest)
        }
        _ => return None,
    };
    let (described, data) = rest.split_at_checked(len as usize)?;
    Some((std::str::from_utf8(described).ok()?, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, described: &str, numbers: &[f32]) -> String {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        if version == 1 {
            bytes.extend((described.len() as u16).to_le_bytes());
        } else {
            bytes.extend((described.len() as u32).to_le_bytes());
        }
        bytes.extend(described.as_bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        BASE64_STANDARD.encode(bytes)
    }

    const PLAIN: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n";

    #[test]
    fn a_matrix_is_read_back() {
        for version in [1, 2] {
            let text = file(version, PLAIN, &[-1.5, f32::NEG_INFINITY]);
            let found = decode(&text, 1, 2).expect("a matrix");
            assert_eq!(found, [-1.5, f32::NEG_INFINITY]);
            assert!(text.len() as u64 <= longest(1, 2));
        }
    }

    #[test]
    fn what_is_no_such_matrix_is_refused() {
        let refused = |text: &str, part: &str| {
            let error = decode(text, 1, 2).expect_err(part).to_string();
            assert!(error.contains(part), "{error}: {part}");
        };
        refused("%", "base64");
        refused(&BASE64_STANDARD.encode(b"\x93NUMPY\x01"), "header");
        refused(&file(9, PLAIN, &[0.0, 0.0]), "header");
        refused(&file(1, PLAIN, &[0.0]), "4 bytes in its matrix, expected 8");
        for other in ["'<f8'", "'>f4'"] {
            refused(
                &file(1, &PLAIN.replace("'<f4'", other), &[0.0, 0.0]),
                "another",
            );
        }
        refused(
            &file(1, &PLAIN.replace("False", "True"), &[0.0, 0.0]),
            "another",
        );
        refused(
            &file(1, &PLAIN.replace("(1, 2)", "(2, 1)"), &[0.0, 0.0]),
            "another",
        );
        let long = u32::MAX.to_le_bytes();
        let cut = [MAGIC, &[2, 0], &long, b"{"].concat();
        refused(&BASE64_STANDARD.encode(cut), "header");
    }
}
