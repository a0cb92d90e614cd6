//! Outputs beside what is kept of them in `snapshots`. `cargo insta review`, or INSTA_UPDATE=always, takes changes over.

use super::{refused, words};

/// What differs from run to run or from machine to machine, and what stands for it.
const MASKED: [(&str, &str); 6] = [
    (r#"[^\s'"`(]*/\.tmp\w{6}"#, "[folder]"),
    (r"(outrider) 0\.\d+\.\d+", "$1 [version]"),
    (r"\(os error \d+\)", "(os error)"),
    (r"\d+\.\d GiB", "[memory]"),
    (r#""request_id": "\w+""#, r#""request_id": "[id]""#),
    (
        r#""(time_to_first_token_ms|total_ms|tokens_per_second|wire_bytes|wire_bytes_per_round)": [\d.e-]+"#,
        r#""$1": "[measured]""#,
    ),
];

/// Compares `text` with the snapshot called `name`.
#[track_caller]
pub(crate) fn shown(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, mask) in MASKED {
        settings.add_filter(pattern, mask);
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Compares with the snapshot called `name` what each line of arguments is refused with.
#[track_caller]
pub(crate) fn refusals(name: &str, lines: &[&str]) {
    let told = |line: &&str| format!("$ outrider {line}\n{}\n", refused(&words(line)));
    let transcript: Vec<_> = lines.iter().map(told).collect();
    shown(name, &transcript.concat());
}
