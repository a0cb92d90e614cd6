//! F1 over words, as answers to SQuAD are compared.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

static ARTICLES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:a|an|the)\b").expect("a pattern"));

/// Returns the F1 of the words of `output` and of the reference nearest to it, 0 to 1, once both are in small letters and
/// without punctuation and articles: `compute_f1` of the evaluation script of SQuAD 2.0 (Rajpurkar et al., 2018). 0 without
/// a reference.
pub(super) fn token_f1(output: &str, references: &[String]) -> f64 {
    let output = normalised(output);
    let all = references.iter();
    all.map(|reference| f1(&output, &normalised(reference)))
        .fold(0.0, f64::max)
}

/// `normalize_answer` of the script.
fn normalised(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let bare: String = lower
        .chars()
        .filter(|char| !char.is_ascii_punctuation())
        .collect();
    let words = ARTICLES.replace_all(&bare, " ");
    words.split_whitespace().map(str::to_owned).collect()
}

fn f1(output: &[String], reference: &[String]) -> f64 {
    if output.is_empty() || reference.is_empty() {
        return f64::from(u8::from(output == reference));
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in reference {
        *left.entry(word).or_default() += 1;
    }
    let mut same = 0.0;
    for word in output {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            same += 1.0;
        }
    }
    // 2PR / (P + R).
    2.0 * same / (output.len() + reference.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_punctuation_and_case_count_for_nothing() {
        let f1 = |output: &str, reference: &str| token_f1(output, &[reference.to_owned()]);
        assert_eq!(f1("The Eiffel-Tower!", "an eiffeltower"), 1.0);
        assert_eq!(f1("the", "a"), 1.0);
        assert_eq!(f1("the", "tower"), 0.0);
        assert_eq!(f1("Theatre", "atre"), 0.0);
        // 2 of 3 words, and 2 of 4.
        let found = f1("red red bird", "red bird and fish");
        assert!((found - 4.0 / 7.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn the_nearest_reference_counts() {
        let references = ["one two".to_owned(), "one".to_owned()];
        assert_eq!(token_f1("one", &references), 1.0);
        assert_eq!(token_f1("one", &[]), 0.0);
    }
}
