//! The flags of commands: what they are called, what they take, and where they are told.

use serde_json::Value;

use super::manual::bash_completes;
use super::{json, outrider, refusals, refused, says, shown, succeeds, words};

#[test]
fn a_prompt_needs_no_flag() {
    let flags = words("--max-tokens 8 --seed 3");
    let tokens = |prompt: &[&str]| json(&[prompt, &flags].concat())["token_ids"].take();
    let by_position = tokens(&["Once upon a time"]);
    assert_eq!(by_position, tokens(&["--prompt", "Once upon a time"]));
    assert_ne!(by_position, tokens(&["Once upon a hill"]));
    assert_ne!(by_position, tokens(&["--prompt", "-5 degrees"]));
    refusals("refused-prompts", &["generate x --prompt y", "generate"]);
}

#[test]
fn help_is_what_it_was() {
    let help = |name: &str, flag: &str| {
        let mut asked = outrider(&[words(name), vec![flag]].concat());
        // They would be told, and set its width.
        asked
            .env_remove("OUTRIDER_TOKEN_FILE")
            .env_remove("COLUMNS");
        succeeds(&mut asked).0
    };
    shown("help", &help("", "--help"));
    let commands = "serve | serve all | serve verifier | serve coordinator | models | score | quantize | \
                    methods | config | config check | doctor | health | completions | man";
    for name in commands.split(" | ") {
        shown(
            &format!("help-{}", name.replace(' ', "-")),
            &help(name, "--help"),
        );
    }
    // The long help of these has every setting of a method, which is told of elsewhere.
    for name in ["generate", "chat", "bench", "calibrate"] {
        shown(&format!("help-{name}"), &help(name, "-h"));
    }
    assert!(help("generate", "-h").lines().count() <= 30);
}

#[test]
fn the_long_help_is_complete_and_in_order() {
    let (long, _) = succeeds(&mut outrider(&["generate", "--help"]));
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
fn flags_of_earlier_releases_are_read() {
    let line = "--max-tokens 4 --seed 3 --method spec-cascade";
    let tokens = |more: &str| json(&[&["x"], &words(line)[..], &words(more)].concat());
    let before = tokens("--model default --target opt");
    let now = tokens("--served-model default --target-distribution opt");
    assert_eq!(before["token_ids"], now["token_ids"]);
    refusals(
        "refused-names",
        &[
            "generate x --target nonsense",
            "generate x --served-model nobody",
            "score --text x --ca-file ca.pem",
        ],
    );
}

#[test]
fn a_negative_number_is_out_of_range_as_others_are() {
    refusals(
        "refused-numbers",
        &[
            "generate x --max-tokens -5",
            "generate x --draft-cap -1",
            "generate x --seed 1.5",
            "generate x --top-p -0.5",
            "generate x --method lossy --alpha -1",
            "bench --per-kind -1",
            "bench --method lossy --alpha -1",
            "score --text x --top -3",
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
    refusals(
        "refused-sampling",
        &[
            "generate x --logit-bias 5",
            "generate x --repetition-penalty 0",
            "generate x --min-tokens 9 --max-tokens 4",
            "generate x --stop-token-ids a",
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
