//! Reading the reference files.

use std::collections::HashMap;

use serde_json::Value;
use speculation::TokenId;
use speculation::real::Real;

/// The cases of a file.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/golden/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut file: Value = serde_json::from_str(&text).expect("JSON");
    match file["cases"].take() {
        Value::Array(cases) if !cases.is_empty() => cases,
        other => panic!("{path}: {other} is no list of cases"),
    }
}

/// The cases of a kind.
pub(crate) fn cases_of(file: &str, kind: &str) -> Vec<Value> {
    let mut cases = cases(file);
    cases.retain(|case| case["kind"] == kind);
    assert!(!cases.is_empty(), "{file}: no case of {kind}");
    cases
}

/// A number, or a list of numbers.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        Value::Number(number) => vec![number.as_f64().expect("a float")],
        other => panic!("{other} is no number"),
    }
}

/// A distribution.
pub(crate) fn row<F: Real>(value: &Value) -> Vec<F> {
    numbers(value).into_iter().map(F::from_f64).collect()
}

/// A list of token ids.
pub(crate) fn ids(value: &Value) -> Vec<TokenId> {
    numbers(value).into_iter().map(|id| id as TokenId).collect()
}

/// Checks that all of `found` are within `tolerance` of `expected`.
pub(crate) fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{found:?} is not {expected:?}");
    for (one, other) in found.iter().zip(expected) {
        assert!(
            (one - other).abs() <= tolerance,
            "{found:?} is not {expected:?}"
        );
    }
}

/// A language model on short prefixes.
pub(crate) struct Tree(HashMap<String, Vec<f64>>);

impl Tree {
    pub(crate) fn of(value: &Value) -> Self {
        let distributions = value.as_object().expect("a tree").iter();
        Self(
            distributions
                .map(|(key, probs)| (key.clone(), numbers(probs)))
                .collect(),
        )
    }

    /// How a prefix is written.
    pub(crate) fn key(prefix: &[TokenId]) -> String {
        let tokens: Vec<String> = prefix.iter().map(TokenId::to_string).collect();
        tokens.join(",")
    }

    pub(crate) fn probs<F: Real>(&self, prefix: &[TokenId]) -> Vec<F> {
        let probs = self.0.get(&Self::key(prefix));
        let probs = probs.unwrap_or_else(|| panic!("no distribution after {prefix:?}"));
        probs.iter().copied().map(F::from_f64).collect()
    }
}
