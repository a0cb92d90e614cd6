//! What a flag takes, in words, where its value is not that.

use std::error::Error;

use clap::error::{ContextKind, ErrorKind};

/// Returns the error of a command line with what a flag takes, where Rust's own parsers say what they could not do with
/// its value.
pub(crate) fn in_words(error: clap::Error) -> clap::Error {
    let expected = error
        .source()
        .and_then(|cause| expected(&cause.to_string()));
    let of = |kind| error.get(kind).map(ToString::to_string);
    let context = (of(ContextKind::InvalidValue), of(ContextKind::InvalidArg));
    let (Some(expected), (Some(value), Some(flag))) = (expected, context) else {
        return error;
    };
    clap::Error::raw(
        ErrorKind::ValueValidation,
        format!(
            "invalid value '{value}' for '{flag}': expected {expected}\n\nFor more information, try '--help'.\n"
        ),
    )
}

/// Returns what is expected where a parser of Rust or clap says `problem`; none if that says so itself.
fn expected(problem: &str) -> Option<String> {
    let words = match problem {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "a whole number"
        }
        "number too large to fit in target type" => "a smaller number",
        "number too small to fit in target type" => "a greater number",
        "number would be zero for non-zero type" => "a whole number, 1 or more",
        "invalid float literal" | "cannot parse float from empty string" => "a number",
        "provided string was not `true` or `false`" => "true or false",
        _ => {
            let (_, range) = problem.split_once(" is not in ")?;
            let (from, to) = range.split_once("..=")?;
            return Some(format!("{from} to {to}"));
        }
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[arg(long)]
        count: Option<u32>,
        #[arg(long)]
        seed: Option<u64>,
        #[arg(long)]
        share: Option<f32>,
        #[arg(long)]
        some: Option<NonZeroU32>,
        #[arg(long)]
        more: Option<NonZeroU64>,
        #[arg(long)]
        size: Option<usize>,
        #[arg(long)]
        is_on: Option<bool>,
    }

    #[test]
    fn what_a_flag_takes_is_said_in_words() {
        for line in [
            "--count=many: expected a whole number",
            "--count=: expected a whole number",
            "--count=1.5: expected a whole number",
            "--count=-1: expected 0 to 4294967295",
            "--count=9999999999: expected 0 to 4294967295",
            "--seed=99999999999999999999: expected a smaller number",
            "--share=much: expected a number",
            "--share=: expected a number",
            "--some=0: expected a whole number, 1 or more",
            "--more=some: expected a whole number",
            "--size=x: expected a whole number",
            "--size=99999999999999999999: expected a smaller number",
        ] {
            let (flag, expected) = line.split_once(": ").expect("what is expected");
            let error = Flags::try_parse_from(["program", flag]).expect_err(flag);
            let said = in_words(error).to_string();
            let first = said.lines().next().unwrap_or_default();
            assert!(
                first.starts_with("error: invalid value '"),
                "{flag}: {first}"
            );
            assert!(first.ends_with(expected), "{flag}: {first}");
        }
        // What says by itself what is expected stays.
        let error = Flags::try_parse_from(["program", "--is-on=maybe"]).expect_err("no flag");
        assert!(
            in_words(error)
                .to_string()
                .contains("[possible values: true, false]")
        );
    }
}
