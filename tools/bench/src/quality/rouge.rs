//! ROUGE-2 and ROUGE-L, as the package `rouge-score` 0.1.2 has them.

use std::collections::HashMap;

/// Returns ROUGE-2 against the reference nearest to `output`: F over pairs of words that follow one another, 0 to 1
/// ("ROUGE: A Package for Automatic Evaluation of Summaries", Lin, 2004, §2). 0 without a reference.
pub(super) fn rouge_2(output: &str, references: &[String]) -> f64 {
    best(output, references, |output, reference| {
        let (found, expected) = (pairs(output), pairs(reference));
        let same = found
            .iter()
            .map(|(pair, &count)| count.min(expected.get(pair).copied().unwrap_or_default()))
            .sum();
        let count = |pairs: &HashMap<_, usize>| pairs.values().sum();
        f_measure(same, count(&found), count(&expected))
    })
}

/// Returns ROUGE-L against the reference nearest to `output`: F over the longest common subsequence of words, 0 to 1 (Lin,
/// 2004, §3.1, with β = 1; line breaks are white space). 0 without a reference.
pub(super) fn rouge_l(output: &str, references: &[String]) -> f64 {
    best(output, references, |output, reference| {
        let same = common_subsequence(output, reference);
        f_measure(same, output.len(), reference.len())
    })
}

fn best(output: &str, references: &[String], f: impl Fn(&[String], &[String]) -> f64) -> f64 {
    let output = words(output);
    let all = references.iter();
    all.map(|reference| f(&output, &words(reference)))
        .fold(0.0, f64::max)
}

/// The package's tokeniser without a stemmer: runs of small letters and digits of ASCII.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|char: char| !char.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn pairs(words: &[String]) -> HashMap<[&str; 2], usize> {
    let mut pairs = HashMap::new();
    for pair in words.windows(2) {
        *pairs.entry([&pair[0][..], &pair[1][..]]).or_default() += 1;
    }
    pairs
}

/// Length of the longest common subsequence, by dynamic programming over one row.
fn common_subsequence(a: &[String], b: &[String]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for word in a {
        let mut diagonal = 0;
        for (index, other) in b.iter().enumerate() {
            let above = row[index + 1];
            row[index + 1] = if word == other {
                diagonal + 1
            } else {
                above.max(row[index])
            };
            diagonal = above;
        }
    }
    row[b.len()]
}

/// 2PR / (P + R) of `same` among what was found and what was expected.
fn f_measure(same: usize, found: usize, expected: usize) -> f64 {
    if same == 0 {
        return 0.0;
    }
    2.0 * same as f64 / (found + expected) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits_of_ascii() {
        let words = words("Don't-STOP: 3.5 Äpfel_1\n");
        assert_eq!(words, ["don", "t", "stop", "3", "5", "pfel", "1"]);
    }

    /// The example of Lin (2004), §3.1: S2 and S3 have the same ROUGE-2 and not the same ROUGE-L.
    #[test]
    fn order_counts_beyond_neighbours() {
        let reference = ["police killed the gunman".to_owned()];
        let s2 = "police kill the gunman";
        let s3 = "the gunman kill police";
        assert_eq!(rouge_l(s2, &reference), 0.75);
        assert_eq!(rouge_l(s3, &reference), 0.5);
        for output in [s2, s3] {
            let found = rouge_2(output, &reference);
            assert!((found - 1.0 / 3.0).abs() < 1e-12, "{found}");
        }
    }

    #[test]
    fn nothing_in_common_is_nothing() {
        let reference = ["one".to_owned()];
        assert_eq!(rouge_2("one", &reference), 0.0);
        assert_eq!(rouge_l("", &reference), 0.0);
        assert_eq!(rouge_l("one", &[]), 0.0);
        assert_eq!(rouge_l("one", &["two".to_owned(), "One!".to_owned()]), 1.0);
    }
}
