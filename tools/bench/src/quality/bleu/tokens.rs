//! The tokeniser of `mteval-v13a`, as `sacrebleu` has it under the name `13a`.

use std::sync::LazyLock;

use regex::Regex;

/// What is put apart, step by step: signs; a full stop or a comma that follows no digit, then one that comes before none; a
/// dash after a digit.
static STEPS: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
    let step = |pattern, apart| (Regex::new(pattern).expect("a pattern"), apart);
    [
        step(r"([\{-\~\[-\` -\&\(-\+\:-\@/])", " $1 "),
        step(r"([^0-9])([.,])", "$1 $2 "),
        step(r"([.,])([^0-9])", " $1 $2"),
        step(r"([0-9])(-)", "$1 $2 "),
    ]
});

/// Characters that stand as entities.
const ENTITIES: [(&str, &str); 4] = [
    ("&quot;", "\""),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
];

/// Returns the tokens of `text`.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let text = text.trim_end().replace("<skipped>", "").replace("-\n", "");
    let mut text = format!(" {} ", text.replace('\n', " "));
    for (entity, char) in ENTITIES {
        text = text.replace(entity, char);
    }
    for (pattern, apart) in &*STEPS {
        text = pattern.replace_all(&text, *apart).into_owned();
    }
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_tokens_and_numbers_stay_whole() {
        for (text, expected) in [
            ("Hello, world!", "Hello , world !"),
            ("1,234.5 eggs, 7.", "1,234.5 eggs , 7 ."),
            (
                "a 3-day well-known trip...",
                "a 3 - day well-known trip . . .",
            ),
            (
                "&quot;x&quot; &lt; [y] &amp;amp; 5%",
                "\" x \" < [ y ] & amp ; 5 %",
            ),
            ("it's 10$ a.b", "it's 10 $ a . b"),
            (
                "two\nlines and a bro-\nken one\n",
                "two lines and a broken one",
            ),
            ("Müde Äpfel – „so“.", "Müde Äpfel – „so“ ."),
            ("", ""),
        ] {
            assert_eq!(tokens(text).join(" "), expected, "{text:?}");
        }
    }
}
