//! What was meant by a name that nothing has.

/// Names more different than this are other words.
const MOST_EDITS: usize = 2;

/// Names of more bytes are no slips: no name that is known is nearly as long, and the time to compare grows with its
/// length.
const MAX_NAME_BYTES: usize = 64;

/// Asks whether the one of `known` was meant that `name` is nearest to, as a part of an error; empty if none is near, or
/// the name is too long to be compared.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if name.len() > MAX_NAME_BYTES {
        return String::new();
    }
    let edits = |it: &&str| strsim::damerau_levenshtein(name, it);
    let near = known.into_iter().min_by_key(edits).filter(|it| {
        let edits = edits(it);
        edits <= MOST_EDITS && 2 * edits < it.len()
    });
    near.map_or_else(String::new, |it| format!(", did you mean `{it}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_slip_or_two_are_meant() {
        let known = ["draft_len", "draft_cap", "n"];
        assert_eq!(
            did_you_mean("draft_lenn", known),
            ", did you mean `draft_len`?"
        );
        assert_eq!(
            did_you_mean("darft_cap", known),
            ", did you mean `draft_cap`?"
        );
        for other in ["temperature", "m", "draft", ""] {
            assert_eq!(did_you_mean(other, known), "", "{other}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_compared_with_none() {
        let known = "k".repeat(MAX_NAME_BYTES);
        let near = &known[1..];
        assert_ne!(did_you_mean(near, [known.as_str()]), "");
        assert_eq!(did_you_mean(&format!("{known}k"), [known.as_str()]), "");
        // Quadratic in its length, this would take minutes.
        assert_eq!(
            did_you_mean(&"k".repeat(16 << 20), [known.as_str(); 100]),
            ""
        );
    }
}
