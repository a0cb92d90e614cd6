//! Who drafts how much for whom, and the limits of it.

use crate::proposal::ProposalForm;

/// The models of a cascade, the matrix K, and lenience.
#[derive(Clone, Debug, PartialEq)]
pub struct CascadeConfig {
    max_gram: bool,
    k: Vec<Vec<u32>>,
    lenience: f64,
    mag_tokens: u32,
}

/// A cascade that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadCascade {
    /// Too many drafts, or none.
    #[error(
        "cascade drafts: {drafts}, expected 1 to {} with Max-Gram counted",
        CascadeConfig::MAX_DRAFTS
    )]
    Drafts {
        /// Drafts found.
        drafts: usize,
    },
    /// Not one row for each reviewer.
    #[error("cascade k: {rows} rows, expected {drafts}, one for each draft")]
    Rows {
        /// Rows found.
        rows: usize,
        /// Drafts, Max-Gram included.
        drafts: usize,
    },
    /// Not one entry for each draft.
    #[error("cascade k: row {row} has {entries} entries, expected {drafts}, one for each draft")]
    Entries {
        /// The row, from 0.
        row: usize,
        /// Entries found.
        entries: usize,
        /// Drafts, Max-Gram included.
        drafts: usize,
    },
    /// An entry below the diagonal: a draft does not review larger ones.
    #[error(
        "cascade k: row {row}, column {column} is {tokens}, expected 0 below the diagonal (a \
         reviewer takes drafts of smaller models only)"
    )]
    Triangle {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// What it is.
        tokens: u32,
    },
    /// A row asks for too many tokens.
    #[error(
        "cascade k: row {row} adds up to {tokens}, expected at most {}",
        CascadeConfig::MAX_TOKENS
    )]
    Quota {
        /// The row, from 0.
        row: usize,
        /// Its sum.
        tokens: u64,
    },
    /// The target asks for nothing.
    #[error("cascade k: row 0 adds up to 0, expected at least 1 token for the target to review")]
    Nothing,
    /// A row whose reviewer nobody asks for anything.
    #[error(
        "cascade k: row {row} is never reached, because no row in use asks anything of draft {row} \
         (column {})", row - 1
    )]
    Unreached {
        /// The row, from 0; also the level of the draft that is its reviewer.
        row: usize,
    },
    /// Lenience out of range.
    #[error("cascade lenience: {0}, expected a finite number of at least 1")]
    Lenience(f64),
    /// Max-Gram proposes too much, or nothing.
    #[error(
        "cascade max_gram_tokens: {tokens}, expected 1 to {}",
        CascadeConfig::MAX_TOKENS
    )]
    MagTokens {
        /// Tokens found.
        tokens: u32,
    },
    /// The laws cannot be told in the form wanted.
    #[error(
        "cascade proposals: {form:?} with lenience {lenience}, expected a sparse or dense law at \
         lenience 1, or a dense law in single precision (or coupled verification, which needs none)"
    )]
    Form {
        /// The form wanted.
        form: ProposalForm,
        /// The lenience.
        lenience: f64,
    },
}

impl CascadeConfig {
    /// Most drafts: a level takes four bits of a random number's key.
    pub const MAX_DRAFTS: usize = 15;

    /// Most tokens of a row of K, and of one proposal of Max-Gram.
    pub const MAX_TOKENS: u32 = 1024;

    /// A cascade of `drafts` drafts, the largest first, the last of them Max-Gram if `max_gram`.
    ///
    /// `k` (drafts, drafts) holds in row r the tokens that reviewer r wants of each draft, reviewer 0
    /// being the target and reviewer r the draft model r; so column c is draft c + 1, and entries
    /// below the diagonal are 0. They are increments: the reviewer turns from one draft to the next
    /// once the entries so far are reached, and what a draft gives beyond them counts for the next.
    ///
    /// A reviewer within the cascade accepts a token t of law e with probability
    /// `min(1, lenience · m(t) / e(t))`. Max-Gram proposes `mag_tokens` at a time.
    ///
    /// # Errors
    /// [`BadCascade`] names the field and its limit.
    pub fn new(
        drafts: usize,
        max_gram: bool,
        k: Vec<Vec<u32>>,
        lenience: f64,
        mag_tokens: u32,
    ) -> Result<Self, BadCascade> {
        if !(1..=Self::MAX_DRAFTS).contains(&drafts) {
            return Err(BadCascade::Drafts { drafts });
        }
        check_shape(&k, drafts)?;
        check_reach(&k)?;
        if !(lenience >= 1.0 && lenience.is_finite()) {
            return Err(BadCascade::Lenience(lenience));
        }
        if !(1..=Self::MAX_TOKENS).contains(&mag_tokens) {
            return Err(BadCascade::MagTokens { tokens: mag_tokens });
        }
        Ok(Self {
            max_gram,
            k,
            lenience,
            mag_tokens,
        })
    }

    /// Number of drafts, Max-Gram included.
    pub fn drafts(&self) -> usize {
        self.k.len()
    }

    /// Number of draft models, Max-Gram not included.
    pub fn models(&self) -> usize {
        self.drafts() - usize::from(self.max_gram)
    }

    /// Whether the last draft is Max-Gram.
    pub fn max_gram(&self) -> bool {
        self.max_gram
    }

    /// The matrix K of increments (drafts, drafts).
    pub fn k(&self) -> &[Vec<u32>] {
        &self.k
    }

    /// Lenience of the reviews within the cascade, at least 1.
    pub fn lenience(&self) -> f64 {
        self.lenience
    }

    /// Tokens that Max-Gram proposes at a time.
    pub fn mag_tokens(&self) -> u32 {
        self.mag_tokens
    }

    /// Whether draft `draft`, a column of K, is Max-Gram.
    pub(super) fn is_max_gram(&self, draft: usize) -> bool {
        self.max_gram && draft + 1 == self.drafts()
    }

    /// Tokens after which `reviewer` turns from draft `draft`, a column of K, to the next.
    pub(super) fn threshold(&self, reviewer: usize, draft: usize) -> usize {
        self.k[reviewer][..=draft].iter().sum::<u32>() as usize
    }

    /// Whether reviews that draw can tell their laws in `form`. With lenience 1 a token leaves its
    /// reviewer by the reviewer's own law, which may be cut before it is drawn from; above 1 by a law
    /// that is known only afterwards and must be told as it is.
    ///
    /// # Errors
    /// [`BadCascade::Form`] if not.
    pub fn check_form(&self, form: ProposalForm) -> Result<(), BadCascade> {
        let lenience = self.lenience;
        match form {
            ProposalForm::Dense { half: false } => Ok(()),
            ProposalForm::Sparse { .. } | ProposalForm::Dense { .. } if lenience == 1.0 => Ok(()),
            _ => Err(BadCascade::Form { form, lenience }),
        }
    }
}

fn check_shape(k: &[Vec<u32>], drafts: usize) -> Result<(), BadCascade> {
    let rows = k.len();
    if rows != drafts {
        return Err(BadCascade::Rows { rows, drafts });
    }
    for (row, quotas) in k.iter().enumerate() {
        let entries = quotas.len();
        if entries != drafts {
            return Err(BadCascade::Entries {
                row,
                entries,
                drafts,
            });
        }
        if let Some(column) = quotas[..row].iter().position(|&tokens| tokens > 0) {
            let tokens = quotas[column];
            return Err(BadCascade::Triangle {
                row,
                column,
                tokens,
            });
        }
        let tokens = quotas.iter().copied().map(u64::from).sum();
        if tokens > u64::from(CascadeConfig::MAX_TOKENS) {
            return Err(BadCascade::Quota { row, tokens });
        }
    }
    Ok(())
}

/// Whether every row that asks for tokens is used.
fn check_reach(k: &[Vec<u32>]) -> Result<(), BadCascade> {
    let asks = |row: &[u32]| row.iter().any(|&tokens| tokens > 0);
    if !asks(&k[0]) {
        return Err(BadCascade::Nothing);
    }
    let mut reached = vec![true];
    for row in 1..k.len() {
        let called = (0..row).any(|reviewer| reached[reviewer] && k[reviewer][row - 1] > 0);
        if !called && asks(&k[row]) {
            return Err(BadCascade::Unreached { row });
        }
        reached.push(called);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(k: &[&[u32]], lenience: f64, mag_tokens: u32) -> Result<CascadeConfig, BadCascade> {
        let rows = k.iter().map(|row| row.to_vec()).collect();
        CascadeConfig::new(2, true, rows, lenience, mag_tokens)
    }

    #[test]
    fn what_cannot_be_is_refused_by_name_and_limit() {
        let fine: &[&[u32]] = &[&[2, 10], &[0, 10]];
        assert!(config(fine, 1.0, 10).is_ok());
        let refused: [(&[&[u32]], f64, u32, &str); 13] = [
            (&[&[2, 10]], 1.0, 10, "k: 1 rows, expected 2"),
            (&[&[2, 1], &[0]], 1.0, 10, "row 1 has 1 entries, expected 2"),
            (&[&[2, 1], &[1, 1]], 1.0, 10, "row 1, column 0 is 1"),
            (&[&[0, 0], &[0, 1]], 1.0, 10, "row 0 adds up to 0"),
            (&[&[0, 2], &[0, 1]], 1.0, 10, "row 1 is never reached"),
            (
                &[&[24, 1001], &[0, 1]],
                1.0,
                10,
                "adds up to 1025, expected at most 1024",
            ),
            (&[&[u32::MAX, 9], &[0, 1]], 1.0, 10, "adds up to 4294967304"),
            (fine, 0.99, 10, "lenience: 0.99, expected"),
            (fine, f64::NAN, 10, "lenience: NaN, expected"),
            (fine, f64::INFINITY, 10, "lenience: inf, expected"),
            (fine, -2.0, 10, "at least 1"),
            (fine, 1.0, 0, "max_gram_tokens: 0, expected 1 to 1024"),
            (fine, 1.0, 1025, "max_gram_tokens: 1025"),
        ];
        for (k, lenience, mag_tokens, expected) in refused {
            let error = config(k, lenience, mag_tokens).expect_err(expected);
            assert!(error.to_string().contains(expected), "{error}");
        }
        for drafts in [0, 16] {
            let k = vec![vec![1; drafts]; drafts];
            let error = CascadeConfig::new(drafts, true, k, 1.0, 10).expect_err("too many");
            assert!(error.to_string().contains("expected 1 to 15"), "{error}");
        }
    }

    #[test]
    fn a_lenient_cascade_tells_whole_laws_only() {
        let sparse = ProposalForm::Sparse { top: 4 };
        let [half, whole] = [true, false].map(|half| ProposalForm::Dense { half });
        let strict = config(&[&[1, 0], &[0, 1]], 1.0, 10).expect("a cascade");
        let lenient = config(&[&[1, 0], &[0, 1]], 1.5, 10).expect("a cascade");
        for form in [sparse, half, whole] {
            assert_eq!(strict.check_form(form), Ok(()));
            assert_eq!(lenient.check_form(form).is_ok(), form == whole);
        }
        for form in [ProposalForm::None, ProposalForm::Point] {
            assert!(strict.check_form(form).is_err());
        }
    }
}
