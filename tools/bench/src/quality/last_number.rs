//! The last number of a text, as answers to GSM8K are compared.

/// Whether the last number in `output` is the last number in one of `references`: "Training Verifiers to Solve Math Word
/// Problems" (Cobbe et al., 2021), whose references end with `#### N`; that no mark is asked of the output is
/// `flexible-extract` of the Language Model Evaluation Harness (Gao et al., 2023).
pub(super) fn is_same(output: &str, references: &[String]) -> bool {
    let Some(found) = last_number(output) else {
        return false;
    };
    let mut expected = references
        .iter()
        .filter_map(|reference| last_number(reference));
    expected.any(|expected| expected == found)
}

/// Returns the last number in `text` in one way of writing: without the commas between thousands, a plus, and zeros that
/// change nothing. A minus is a sign unless a letter, a digit or a closing bracket is before it.
fn last_number(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = None;
    let mut at = 0;
    while at < chars.len() {
        let is_fraction = chars[at] == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit);
        if chars[at].is_ascii_digit() || is_fraction {
            let (digits, end) = unsigned(&chars, at);
            found = Some(if is_negative(&chars[..at]) && digits != "0" {
                format!("-{digits}")
            } else {
                digits
            });
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

/// Whether what comes before a number ends with its minus.
fn is_negative(before: &[char]) -> bool {
    let before = before.strip_suffix(&['$']).unwrap_or(before);
    let [rest @ .., '-' | '−'] = before else {
        return false;
    };
    let last = rest.last();
    !last.is_some_and(|&last| last.is_alphanumeric() || [')', ']'].contains(&last))
}

/// Returns the number that begins at `start`, and where it ends.
fn unsigned(chars: &[char], start: usize) -> (String, usize) {
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    // Three digits and no fourth.
    let is_thousands =
        |comma: usize| (1..=3).all(|offset| is_digit(comma + offset)) && !is_digit(comma + 4);
    let (mut whole, mut fraction) = (String::new(), String::new());
    let mut at = start;
    loop {
        if is_digit(at) {
            whole.push(chars[at]);
        } else if !(chars.get(at) == Some(&',') && is_digit(at.wrapping_sub(1)) && is_thousands(at))
        {
            break;
        }
        at += 1;
    }
    if chars.get(at) == Some(&'.') && is_digit(at + 1) {
        at += 1;
        while is_digit(at) {
            fraction.push(chars[at]);
            at += 1;
        }
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    (format!("{whole}{point}{fraction}"), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_found_however_it_is_written() {
        for (text, expected) in [
            ("16 - 3 - 4 = <<16-3-4=9>>9 eggs.\n#### 9", Some("9")),
            ("She earns $1,234,500.50 a year.", Some("1234500.5")),
            ("between 1,2 and 3,4", Some("4")),
            ("12,3456", Some("3456")),
            ("it fell to -7.", Some("-7")),
            ("it fell to −7.0 degrees", Some("-7")),
            ("a loss of -$1,000", Some("-1000")),
            ("5-3", Some("3")),
            ("(2+1)-3", Some("3")),
            ("x = +018", Some("18")),
            ("-0.00", Some("0")),
            ("about .50 of it", Some("0.5")),
            ("version 1.2.3", Some("0.3")),
            ("40% of them", Some("40")),
            ("three", None),
            ("", None),
        ] {
            assert_eq!(last_number(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn an_answer_is_right_if_its_last_number_is_that_of_a_reference() {
        let references = ["6 * 3 = <<6*3=18>>18.\n#### 18".to_owned()];
        for right in ["18", "So she makes $18.00 every day.", "#### 18\n"] {
            assert!(is_same(right, &references), "{right:?}");
        }
        for wrong in ["18, or 19", "-18", "180", "eighteen", ""] {
            assert!(!is_same(wrong, &references), "{wrong:?}");
        }
        let others = ["none".to_owned(), "1,000".to_owned(), "1e3".to_owned()];
        assert!(is_same("1000", &others));
        assert!(!is_same("18", &others[..1]));
    }
}
