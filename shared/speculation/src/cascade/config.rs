//! Who drafts how much for whom, and the limits of it.

use crate::bad_value::BadValue;
use crate::proposal::ProposalForm;

/// Name of the matrix K, in requests too.
const K: &str = "cascade_k";

/// Name of the lenience.
const LENIENCE: &str = "cascade_lenience";

/// Name of the tokens that Max-Gram proposes at a time.
const MAX_GRAM_TOKENS: &str = "cascade_max_gram_tokens";

/// What a request sets of its drafter's cascade; what it leaves out is as the drafter has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CascadeSettings {
    /// The matrix K (drafts, drafts), see [`CascadeConfig::new`].
    pub k: Option<Vec<Vec<u32>>>,
    /// Lenience of the reviews within the cascade, at least 1.
    pub lenience: Option<f64>,
    /// Tokens that Max-Gram proposes at a time.
    pub max_gram_tokens: Option<u32>,
}

impl CascadeSettings {
    /// What Chen et al. set for a draft model and Max-Gram (Appendix B).
    pub fn paper() -> Self {
        Self {
            k: Some(vec![vec![2, 10], vec![0, 10]]),
            lenience: None,
            max_gram_tokens: Some(10),
        }
    }

    /// Returns the same, with `others` where it sets nothing.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            k: self.k.or(others.k),
            lenience: self.lenience.or(others.lenience),
            max_gram_tokens: self.max_gram_tokens.or(others.max_gram_tokens),
        }
    }

    /// Returns whether it sets nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The models of a cascade, the matrix K, and lenience.
#[derive(Clone, Debug, PartialEq)]
pub struct CascadeConfig {
    max_gram: bool,
    k: Vec<Vec<u32>>,
    lenience: f64,
    mag_tokens: u32,
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
    /// A reviewer within the cascade accepts a token t of distribution e with probability
    /// `min(1, lenience · m(t) / e(t))`. Max-Gram proposes `mag_tokens` at a time.
    ///
    /// # Errors
    /// Names the field and its limit.
    pub fn new(
        drafts: usize,
        max_gram: bool,
        k: Vec<Vec<u32>>,
        lenience: f64,
        mag_tokens: u32,
    ) -> Result<Self, BadValue> {
        if !(1..=Self::MAX_DRAFTS).contains(&drafts) {
            let most = Self::MAX_DRAFTS;
            let problem = format!("{drafts}, expected 1 to {most} with Max-Gram counted");
            return Err(BadValue::new("cascade_drafts", problem));
        }
        check_shape(&k, drafts)?;
        check_reach(&k)?;
        if !(lenience >= 1.0 && lenience.is_finite()) {
            let problem = format!("{lenience}, expected a finite number of at least 1");
            return Err(BadValue::new(LENIENCE, problem));
        }
        if !(1..=Self::MAX_TOKENS).contains(&mag_tokens) {
            let problem = format!("{mag_tokens}, expected 1 to {}", Self::MAX_TOKENS);
            return Err(BadValue::new(MAX_GRAM_TOKENS, problem));
        }
        Ok(Self {
            max_gram,
            k,
            lenience,
            mag_tokens,
        })
    }

    /// Returns the same drafts with what `settings` sets.
    ///
    /// # Errors
    /// Names the field and its limit, as [`CascadeConfig::new`] does.
    pub fn with(&self, settings: &CascadeSettings) -> Result<Self, BadValue> {
        if settings.max_gram_tokens.is_some() && !self.max_gram {
            let problem = "the drafter's cascade has no Max-Gram; leave it out";
            return Err(BadValue::new(MAX_GRAM_TOKENS, problem));
        }
        Self::new(
            self.drafts(),
            self.max_gram,
            settings.k.clone().unwrap_or_else(|| self.k.clone()),
            settings.lenience.unwrap_or(self.lenience),
            settings.max_gram_tokens.unwrap_or(self.mag_tokens),
        )
    }

    /// Checks what can be told of a matrix K without the drafts it is for.
    ///
    /// # Errors
    /// Names the row that is wrong, and its limit.
    pub fn check_k(k: &[Vec<u32>]) -> Result<(), BadValue> {
        let most = Self::MAX_DRAFTS;
        if !(1..=most).contains(&k.len()) {
            let rows = k.len();
            return Err(bad_k(&format!("{rows} rows, expected 1 to {most}")));
        }
        check_shape(k, k.len())?;
        check_reach(k)
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

    /// Checks that reviews that draw can send their distributions in `form`. With lenience 1 a token leaves its
    /// reviewer by the reviewer's own distribution, which may be cut before it is drawn from; above 1 by a distribution
    /// that is known only afterwards and must be sent whole.
    ///
    /// # Errors
    /// If not.
    pub fn check_form(&self, form: ProposalForm) -> Result<(), BadValue> {
        let lenience = self.lenience;
        match form {
            ProposalForm::Dense { half: false } => Ok(()),
            ProposalForm::Sparse { .. } | ProposalForm::Dense { .. } if lenience == 1.0 => Ok(()),
            ProposalForm::None
            | ProposalForm::Point
            | ProposalForm::Sparse { .. }
            | ProposalForm::Dense { half: true } => {
                let problem = format!(
                    "{form:?} with lenience {lenience}, expected a sparse or dense distribution at lenience 1, or a \
                     dense distribution in single precision (or coupled verification, which needs none)"
                );
                Err(BadValue::new("cascade_proposals", problem))
            }
        }
    }
}

fn bad_k(problem: &str) -> BadValue {
    BadValue::new(K, problem)
}

/// Checks that `k` is upper triangular, a row and a column for each of `drafts` drafts, and asks for few enough tokens.
fn check_shape(k: &[Vec<u32>], drafts: usize) -> Result<(), BadValue> {
    let rows = k.len();
    if rows != drafts {
        return Err(bad_k(&format!(
            "{rows} rows, expected {drafts}, one for each draft"
        )));
    }
    for (row, quotas) in k.iter().enumerate() {
        let entries = quotas.len();
        if entries != drafts {
            let problem =
                format!("row {row} has {entries} entries, expected {drafts}, one for each draft");
            return Err(bad_k(&problem));
        }
        if let Some(column) = quotas[..row].iter().position(|&tokens| tokens > 0) {
            let tokens = quotas[column];
            return Err(bad_k(&format!(
                "row {row}, column {column} is {tokens}, expected 0 below the diagonal (a reviewer takes \
                 drafts of smaller models only)"
            )));
        }
        let tokens: u64 = quotas.iter().copied().map(u64::from).sum();
        if tokens > u64::from(CascadeConfig::MAX_TOKENS) {
            let most = CascadeConfig::MAX_TOKENS;
            return Err(bad_k(&format!(
                "row {row} adds up to {tokens}, expected at most {most}"
            )));
        }
    }
    Ok(())
}

/// Whether every row that asks for tokens is used.
fn check_reach(k: &[Vec<u32>]) -> Result<(), BadValue> {
    let asks = |row: &[u32]| row.iter().any(|&tokens| tokens > 0);
    if !asks(&k[0]) {
        let problem = "row 0 adds up to 0, expected at least 1 token for the target to review";
        return Err(bad_k(problem));
    }
    let mut reached = vec![true];
    for row in 1..k.len() {
        let called = (0..row).any(|reviewer| reached[reviewer] && k[reviewer][row - 1] > 0);
        if !called && asks(&k[row]) {
            let column = row - 1;
            return Err(bad_k(&format!(
                "row {row} is never reached, because no row in use asks anything of draft {row} (column \
                 {column})"
            )));
        }
        reached.push(called);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(k: &[&[u32]], lenience: f64, mag_tokens: u32) -> Result<CascadeConfig, BadValue> {
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
    fn a_request_sets_what_it_names_and_leaves_the_rest() {
        let own = config(&[&[2, 4], &[0, 1]], 1.0, 4).expect("a cascade");
        assert_eq!(own.with(&CascadeSettings::default()), Ok(own.clone()));
        let k = vec![vec![1, 3], vec![0, 2]];
        let settings = CascadeSettings {
            k: Some(k.clone()),
            lenience: Some(2.0),
            max_gram_tokens: None,
        };
        let set = own.with(&settings).expect("fits");
        assert_eq!(
            (set.k(), set.lenience(), set.mag_tokens()),
            (&k[..], 2.0, 4)
        );
        let refused = |settings: CascadeSettings, words: &str| {
            let bad = own.with(&settings).expect_err(words).to_string();
            assert!(bad.contains(words), "{bad}");
        };
        let mut wrong = settings.clone();
        wrong.k = Some(vec![vec![1]]);
        refused(wrong, "cascade_k: 1 rows, expected 2");
        let more = |max_gram_tokens| CascadeSettings {
            max_gram_tokens: Some(max_gram_tokens),
            ..CascadeSettings::default()
        };
        refused(more(0), "cascade_max_gram_tokens: 0, expected 1 to 1024");
        let models = CascadeConfig::new(2, false, k, 1.0, 4).expect("two models");
        let bad = models.with(&more(4)).expect_err("no Max-Gram").to_string();
        assert!(bad.contains("has no Max-Gram"), "{bad}");
    }

    #[test]
    fn a_lenient_cascade_tells_whole_distributions_only() {
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
