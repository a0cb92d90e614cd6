//! BLEU over a corpus, as the package `sacrebleu` 2.6 computes it unless it is told otherwise.

mod tokens;

use std::collections::HashMap;

use tokens::tokens;

/// Longest n-grams.
const ORDER: usize = 4;

/// What BLEU is computed from, added up over outputs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// n-grams of the outputs that their references have too, by n - 1.
    matched: [usize; ORDER],
    /// n-grams of the outputs, by n - 1.
    all: [usize; ORDER],
    /// Tokens of the outputs.
    output_len: usize,
    /// Tokens of the references nearest in length.
    reference_len: usize,
}

/// Returns BLEU-4 of all `outputs` together, each with its references, 0 to 1: "BLEU: a Method for Automatic Evaluation of
/// Machine Translation" (Papineni et al., 2002), with tokens of `mteval-v13a` and n-grams that never matched smoothed as
/// there ("A Call for Clarity in Reporting BLEU Scores", Post, 2018: `tok:13a|smooth:exp`).
pub(super) fn bleu<'a>(outputs: impl IntoIterator<Item = (&'a str, &'a [String])>) -> f64 {
    let counts = outputs
        .into_iter()
        .map(|(output, references)| Counts::of(output, references));
    Counts::sum(counts).bleu()
}

impl Counts {
    /// Returns those of one output.
    pub(super) fn of(output: &str, references: &[String]) -> Self {
        let mut counts = Self::default();
        let output = tokens(output);
        let references: Vec<_> = references.iter().map(|text| tokens(text)).collect();
        let mut expected: HashMap<&[String], usize> = HashMap::new();
        for reference in &references {
            for (gram, count) in n_grams(reference) {
                let most = expected.entry(gram).or_default();
                *most = count.max(*most);
            }
        }
        for (gram, count) in n_grams(&output) {
            let n = gram.len() - 1;
            counts.all[n] += count;
            counts.matched[n] += count.min(expected.get(gram).copied().unwrap_or_default());
        }
        // The nearest, of two as near the shorter.
        let lengths = references.iter().map(Vec::len);
        let nearest = lengths.min_by_key(|&len| (len.abs_diff(output.len()), len));
        counts.output_len = output.len();
        counts.reference_len = nearest.unwrap_or_default();
        counts
    }

    pub(super) fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::default();
        for counts in all {
            for n in 0..ORDER {
                sum.matched[n] += counts.matched[n];
                sum.all[n] += counts.all[n];
            }
            sum.output_len += counts.output_len;
            sum.reference_len += counts.reference_len;
        }
        sum
    }

    pub(super) fn bleu(&self) -> f64 {
        let Self {
            matched,
            all,
            output_len,
            reference_len,
        } = *self;
        // Where nothing is that long, its precision is 0, and so is the product.
        if matched == [0; ORDER] || all.contains(&0) {
            return 0.0;
        }
        let mut smoothing = 1.0;
        let mut logs = 0.0;
        for (&matched, &all) in matched.iter().zip(&all) {
            let matched = if matched == 0 {
                smoothing *= 2.0;
                1.0 / smoothing
            } else {
                matched as f64
            };
            logs += (matched / all as f64).ln();
        }
        let brevity = (1.0 - reference_len as f64 / output_len as f64).min(0.0);
        (brevity + logs / ORDER as f64).exp()
    }
}

/// The n-grams of 1 to 4 tokens, each with how often it comes.
fn n_grams(tokens: &[String]) -> HashMap<&[String], usize> {
    let mut counts = HashMap::new();
    for gram in (1..=ORDER).flat_map(|n| tokens.windows(n)) {
        *counts.entry(gram).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(output: &str, references: &[&str]) -> f64 {
        let references: Vec<_> = references.iter().map(|&text| text.to_owned()).collect();
        bleu([(output, &references[..])])
    }

    #[test]
    fn an_output_that_is_the_reference_has_all() {
        assert!((one("one two three four", &["one two three four"]) - 1.0).abs() < 1e-12);
        assert_eq!(one("one two three", &["one two three"]), 0.0);
        assert_eq!(one("five", &["one two three four"]), 0.0);
        assert_eq!(one("", &["one"]), 0.0);
        assert_eq!(bleu([]), 0.0);
    }

    #[test]
    fn a_repeated_word_counts_as_often_as_a_reference_has_it() {
        // 2 of 4 words, 1 of 3 pairs; then half of 1 of 2, and a quarter of 1 of 1.
        let found = one("the the the the", &["the cat the", "the the dog x y"]);
        let expected = (0.5 * (1.0 / 3.0) * 0.25 * 0.25_f64).powf(0.25);
        assert!((found - expected).abs() < 1e-12, "{found}");
    }

    #[test]
    fn a_short_output_is_worth_less() {
        // Both references are as near: the shorter one counts, so nothing is lost.
        let near = one("a b c d e", &["a b c d", "a b c d e f"]);
        assert!((near - 1.0).abs() < 1e-12, "{near}");
        let short = one("a b c d", &["a b c d e f"]);
        assert!((short - (-0.5_f64).exp()).abs() < 1e-12, "{short}");
    }
}
