//! Names and values of what a request sets of its drafter's cascade (Cascade Speculative Drafting).

use super::{BadValue, out_of_range, ranged, unknown};
use crate::cascade::CascadeConfig;
use crate::methods::setting::AxisValue;

/// Least and most lenience that a request may ask for.
const LENIENCE: (f64, f64) = (1.0, 1000.0);

/// The form of a matrix K.
pub fn cascade_ks() -> Vec<AxisValue> {
    let most = CascadeConfig::MAX_TOKENS;
    vec![ranged(
        "N+N/0+N",
        format!("a row adds up to at most {most}"),
        "a row for each reviewer, the target first, of tokens of each draft; 2+10/0+10 with a draft model and Max-Gram",
    )]
}

/// The form of a lenience.
pub fn cascade_leniences() -> Vec<AxisValue> {
    let (least, most) = LENIENCE;
    vec![ranged("N", format!("{least} to {most}"), "1 is strict")]
}

/// The form of the tokens that Max-Gram proposes at a time.
pub fn cascade_max_gram_tokens() -> Vec<AxisValue> {
    let most = CascadeConfig::MAX_TOKENS;
    vec![ranged("N", format!("1 to {most}"), "this many tokens")]
}

/// Reads a matrix K (drafts, drafts): rows after one another, `2+10/0+10`.
///
/// # Errors
/// If it is none, or no reviewer could go by it.
pub fn cascade_k(text: &str) -> Result<Vec<Vec<u32>>, BadValue> {
    let entries = |row: &str| {
        row.split('+')
            .map(|entry| entry.trim().parse().ok())
            .collect()
    };
    let rows: Option<Vec<Vec<u32>>> = text.split('/').map(entries).collect();
    let rows = rows.ok_or_else(|| unknown("cascade_k", text, &cascade_ks()))?;
    CascadeConfig::check_k(&rows)?;
    Ok(rows)
}

/// Writes the matrix `k`.
pub fn of_cascade_k(k: &[Vec<u32>]) -> String {
    let row = |row: &Vec<u32>| {
        let entries: Vec<_> = row.iter().map(ToString::to_string).collect();
        entries.join("+")
    };
    let rows: Vec<_> = k.iter().map(row).collect();
    rows.join("/")
}

/// Reads a lenience.
///
/// # Errors
/// If it is no number, or out of range.
pub fn cascade_lenience(text: &str) -> Result<f64, BadValue> {
    let (least, most) = LENIENCE;
    let lenience: f64 = text
        .parse()
        .map_err(|_| unknown("cascade_lenience", text, &cascade_leniences()))?;
    let fits = (least..=most).contains(&lenience);
    let range = format!("{least} to {most}");
    let refused = || out_of_range("cascade_lenience", text, &range);
    fits.then_some(lenience).ok_or_else(refused)
}

/// Reads how many tokens Max-Gram proposes at a time.
///
/// # Errors
/// If it is no whole number, or out of range.
pub fn cascade_max_gram(text: &str) -> Result<u32, BadValue> {
    let most = CascadeConfig::MAX_TOKENS;
    let tokens = text.parse().ok();
    let tokens = tokens.filter(|tokens| (1..=most).contains(tokens));
    let range = format!("1 to {most}");
    tokens.ok_or_else(|| out_of_range("cascade_max_gram_tokens", text, &range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_read_as_it_is_written() {
        let k = cascade_k("2+10/0+10").expect("a matrix");
        assert_eq!(k, [[2, 10], [0, 10]]);
        assert_eq!(of_cascade_k(&k), "2+10/0+10");
        for (text, words) in [
            ("", "cascade_k"),
            ("2,10/0,10", "'2,10/0,10' is unknown"),
            ("2+10", "row 0 has 2 entries, expected 1"),
            ("2+10/1+10", "expected 0 below the diagonal"),
            ("0+0/0+1", "row 0 adds up to 0"),
            ("2+1023/0+1", "adds up to 1025"),
            ("-2+10/0+10", "is unknown"),
        ] {
            let bad = cascade_k(text).expect_err(text).to_string();
            assert!(bad.contains(words), "{bad}");
        }
    }

    #[test]
    fn numbers_lie_in_their_ranges() {
        assert_eq!(cascade_lenience("1.5"), Ok(1.5));
        assert_eq!(cascade_max_gram("10"), Ok(10));
        for text in ["0.9", "1001", "NaN", "much"] {
            assert!(cascade_lenience(text).is_err(), "{text}");
        }
        for text in ["0", "1025", "2.5", "all"] {
            assert!(cascade_max_gram(text).is_err(), "{text}");
        }
    }
}
