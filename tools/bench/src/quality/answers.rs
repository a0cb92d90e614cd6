//! Answers that are right or wrong as texts.

/// Whether the first line of `output` is one of `references`, white space around them aside. A first line that is empty
/// answers nothing: what comes after it does not count.
pub(super) fn is_exact(output: &str, references: &[String]) -> bool {
    let first = output.lines().next().unwrap_or_default().trim();
    references.iter().any(|reference| first == reference.trim())
}

/// Whether one of `references` stands somewhere in `output`, letters being the same large and small: `string_match_part`
/// of RULER (Hsieh et al., 2024).
pub(super) fn contains(output: &str, references: &[String]) -> bool {
    let output = output.to_lowercase();
    let mut references = references.iter();
    references.any(|reference| output.contains(reference.trim().to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn the_first_line_is_compared_as_a_whole() {
        let references = owned(&[" Der Hund.", "Ein Hund."]);
        let more = "Der Hund.\nQuestion: what?";
        for right in [
            " Der Hund.",
            "Der Hund.  ",
            more,
            "Der Hund.\r\n",
            "Ein Hund.",
        ] {
            assert!(is_exact(right, &references), "{right:?}");
        }
        let [late, spaced, longer] = ["\nDer Hund.", "Der  Hund.", "Der Hund. Ja."];
        for wrong in ["", late, "Der Hund", "Der hund.", spaced, longer] {
            assert!(!is_exact(wrong, &references), "{wrong:?}");
        }
        assert!(!is_exact("Der Hund.", &[]));
    }

    #[test]
    fn a_reference_may_stand_anywhere() {
        let references = owned(&["Rome", " the Eternal City\n"]);
        for right in ["It is Rome.", "rome", "THE ETERNAL CITY, of course"] {
            assert!(contains(right, &references), "{right:?}");
        }
        assert!(!contains("Milan, the city", &references));
        assert!(!contains("Rome", &[]));
    }
}
