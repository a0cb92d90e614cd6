//! The flags of commands: what they are called, what they take, and where they are told.

use serde_json::Value;

use super::manual::bash_completes;
use super::{each_refused, json, outrider, refused, says, succeeds, words};

#[test]
fn a_prompt_needs_no_flag() {
    let flags = words("--max-tokens 8 --seed 3");
    let tokens = |prompt: &[&str]| json(&[prompt, &flags].concat())["token_ids"].take();
    let by_position = tokens(&["Once upon a time"]);
    assert_eq!(by_position, tokens(&["--prompt", "Once upon a time"]));
    assert_ne!(by_position, tokens(&["Once upon a hill"]));
    assert_ne!(by_position, tokens(&["--prompt", "-5 degrees"]));
    each_refused(&["generate"], &["x --prompt y | cannot be used with"]);
}

#[test]
fn the_short_help_fits_a_screen_and_the_long_one_is_complete() {
    let help = |flag: &str| succeeds(&mut outrider(&["generate", flag])).0;
    let (short, long) = (help("-h"), help("--help"));
    assert!(short.lines().count() <= 30, "{short}");
    says(
        &short,
        "[PROMPT | --max-tokens | --coordinator | --method | '--help'",
    );
    says(
        &long,
        "--logit-bias | --ca-file | --target-distribution | --config | Examples:",
    );
    let heading = |name: &str| long.find(name).unwrap_or_else(|| panic!("{name}: {long}"));
    let order = [
        "\nOptions:",
        "\nSampling:",
        "\nMethod:",
        "\nDrafting:",
        "\nServices:",
        "\nConnection:",
        "\nProgram:",
    ];
    assert!(order.map(heading).is_sorted(), "{long}");
}

#[test]
fn certificates_are_for_commands_that_connect() {
    for command in ["score", "quantize", "methods", "models", "completions"] {
        let help = succeeds(&mut outrider(&[command, "--help"])).0;
        assert!(!help.contains("--ca-file"), "{command}: {help}");
    }
    for command in ["serve", "generate", "chat", "bench"] {
        let help = succeeds(&mut outrider(&[command, "--help"])).0;
        assert!(help.contains("--ca-file"), "{command}: {help}");
    }
    each_refused(
        &[],
        &["score --text x --ca-file ca.pem | unexpected argument '--ca-file'"],
    );
}

#[test]
fn flags_of_earlier_releases_are_read() {
    let line = "--max-tokens 4 --seed 3 --method spec-cascade";
    let tokens = |more: &str| json(&[&["x"], &words(line)[..], &words(more)].concat());
    let before = tokens("--model default --target opt");
    let now = tokens("--served-model default --target-distribution opt");
    assert_eq!(before["token_ids"], now["token_ids"]);
    each_refused(
        &["generate", "x"],
        &[
            "--target nonsense | --target-distribution: | nonsense",
            "--served-model nobody | nobody",
        ],
    );
}

#[test]
fn a_negative_number_is_out_of_range_as_others_are() {
    each_refused(
        &[],
        &[
            "generate x --max-tokens -5 | --max-tokens | -5 | expected 0 to 4294967295",
            "generate x --draft-cap -1 | --draft-cap | -1 | expected 1 to 64",
            "generate x --seed 1.5 | --seed | whole number from -9223372036854775808",
            "generate x --top-p -0.5 | top_p | -0.5",
            "generate x --method lossy --alpha -1 | alpha | -1",
            "bench --per-kind -1 | --per-kind | -1",
            "score --text x --top -3 | --top | -3",
        ],
    );
}

#[test]
fn what_may_be_drawn_is_chosen_on_the_command_line() {
    let generated = |more: &str| {
        let line = "--max-tokens 12 --seed 2 --ignore-eos --temperature 1";
        json(&[&["Once upon a time"], &words(line)[..], &words(more)].concat())
    };
    let ids = |answer: &Value| -> Vec<u64> {
        let ids = answer["token_ids"].as_array().expect("an array");
        ids.iter().filter_map(Value::as_u64).collect()
    };
    let plain = ids(&generated(""));
    let first = plain[0];
    assert!(!ids(&generated(&format!("--banned-token-ids {first}"))).contains(&first));
    let only = ids(&generated("--allowed-token-ids 300,301"));
    assert!(only.iter().all(|id| [300, 301].contains(id)), "{only:?}");
    let biased = ids(&generated("--logit-bias 500:10000,501:-1"));
    assert_eq!(biased, [500; 12]);
    let ended = generated(&format!("--stop-token-ids {first}"));
    assert_eq!(
        (ids(&ended).len(), &ended["finish_reason"]),
        (1, &"stop".into())
    );
    for penalty in ["repetition", "presence", "frequency"] {
        let penalised = generated(&format!("--{penalty}-penalty 50 --logit-bias 500:40"));
        assert_ne!(ids(&penalised), [500; 12], "{penalty}");
    }
    each_refused(
        &["generate", "x"],
        &[
            "--logit-bias 5 | --logit-bias | ID:BIAS",
            "--repetition-penalty 0 | repetition_penalty | 0.01 to 100",
            "--min-tokens 9 --max-tokens 4 | min_tokens | 9",
            "--stop-token-ids a | --stop-token-ids | a",
        ],
    );
}

/// A shell that is installed completes the values of flags.
#[cfg(unix)]
#[test]
fn bash_completes_values() {
    bash_completes(
        r#"
        COMP_WORDS=(outrider generate --method tok) COMP_CWORD=3
        _outrider outrider tok --method
        echo "${COMPREPLY[@]}"
        "#,
        "token-cascade\n",
    );
    // The values are offered, and not insisted on by the command line.
    says(&refused(&["generate", "x", "--method", "tok"]), "tok");
}
