use super::*;

/// Returns the settings of a command line, word by word.
fn settings_of(line: &str) -> ChatSettings {
    let matches = parser().get_matches_from(std::iter::once("chat").chain(line.split(' ')));
    let given = GivenFlags::from_arg_matches(&matches).expect("flags");
    ChatSettings::new(given).expect("flags that will do")
}

fn temperature(settings: &ChatSettings) -> Option<f32> {
    settings.request.sampling.as_ref()?.temperature
}

/// Returns whether a setting of the method is given.
fn settings_given(request: &v1::GenerateRequest, name: &str) -> bool {
    let setting = speculation::methods::Setting::find(name).expect(name);
    wire::settings::gives(request, setting)
}

#[test]
fn what_is_set_takes_the_place_of_what_was_given() {
    let mut settings = settings_of("--temperature 0.5 --seed 7 --ignore-eos --stop a --stop=-b");
    assert_eq!(temperature(&settings), Some(0.5));
    assert_eq!(settings.request.stop, ["a", "-b"]);
    assert!(settings.request.ignore_eos && !settings.stats);
    for (name, value) in [
        ("temperature", "0.7"),
        ("max-tokens", "9"),
        ("draft_len", "auto"),
        ("method", "rejection"),
        ("system", "You are  brief."),
        ("stats", "on"),
        ("ignore_eos", "off"),
        ("stop", "--"),
    ] {
        settings.set(name, value).expect(name);
    }
    let request = &settings.request;
    assert_eq!(temperature(&settings), Some(0.7));
    assert_eq!(
        (request.max_tokens, &*request.method),
        (Some(9), "rejection")
    );
    assert!(settings.stats && !request.ignore_eos && settings_given(request, "draft_len"));
    assert_eq!(request.stop, ["--"]);
    assert_eq!(settings.system.as_deref(), Some("You are  brief."));
    assert_eq!(request.seed, Some(7));
    let shown = settings.to_string();
    assert!(
        shown.contains("system       You are  brief.\ntemperature  0.7"),
        "{shown}"
    );
}

#[test]
fn none_takes_back_what_was_set_or_given() {
    let mut settings = settings_of("--seed 7 --top-k 5");
    for name in ["seed", "top_k", "system"] {
        settings.set(name, "none").expect(name);
    }
    assert_eq!(settings.request.seed, None);
    assert!(settings.to_string().starts_with("nothing is set"));
    // There is a form of proposals of that name.
    settings.set("temperature", "0").expect("a number");
    settings.set("proposal", "none").expect("a form");
    assert!(settings_given(&settings.request, "proposal"));
}

#[test]
fn what_will_not_do_is_named_as_by_the_flags_and_changes_nothing() {
    let mut settings = settings_of("--seed 7");
    let before = format!("{settings:?}");
    for (name, value, words) in [
        (
            "temperature",
            "warm",
            "invalid value 'warm' for '--temperature <T>'",
        ),
        (
            "temperature",
            "-1",
            "temperature: -1 is out of range, expected 0 to 100",
        ),
        (
            "top_p",
            "0",
            "top_p: 0 is out of range, expected more than 0, at most 1",
        ),
        (
            "seed",
            "1.5",
            "expected a whole number from -9223372036854775808 to",
        ),
        ("max_tokens", "0", "max_tokens: 0 is out of range"),
        ("method", "nonsense", "target-only"),
        ("draft_len", "65", "1 to 64"),
        ("draft_len", "confidence:2", "--draft-len"),
        ("stats", "yes", "expected on or off"),
        ("colour", "green", "max_tokens, temperature"),
        ("coordinator", "http://other", "there is no 'coordinator'"),
        ("ca_file", "ca.pem", "there is no 'ca_file'"),
    ] {
        let error = settings.set(name, value).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(format!("{settings:?}"), before);
}
