use speculation::methods::{MethodSpec, Setup};
use wire::status::CONTEXT_LENGTH_EXCEEDED;

use super::*;

#[test]
fn max_tokens_must_fit_the_context() {
    let peer = |context_len| v1::PeerDescription {
        context_len,
        ..Default::default()
    };
    let max_tokens =
        |requested, prompt, context| max_tokens(requested, prompt, 1, u32::MAX, &peer(context));
    assert_eq!(max_tokens(None, 12, 512), Ok(500));
    assert_eq!(max_tokens(None, 500, 512), Ok(12));
    assert_eq!(max_tokens(Some(500), 12, 512), Ok(500));
    let error = max_tokens(Some(501), 12, 512)
        .expect_err("too many")
        .to_string();
    assert!(
        error.contains("501") && error.contains("1 to 500"),
        "{error}"
    );
    assert!(
        error.starts_with("max_tokens: This model's maximum context length is 512 tokens"),
        "{error}"
    );
    assert_eq!(
        max_tokens(Some(0), 12, 512).expect_err("none").field,
        "max_tokens"
    );
    for (requested, prompt) in [(Some(0), 513), (Some(1), 512), (None, 513)] {
        let error =
            super::max_tokens(requested, prompt, 0, u32::MAX, &peer(512)).expect_err("no room");
        assert_eq!(error.field, "prompt", "{requested:?} after {prompt}");
        assert_eq!(error.reason, Some(CONTEXT_LENGTH_EXCEEDED));
    }
    assert_eq!(super::max_tokens(Some(0), 512, 0, 9, &peer(512)), Ok(0));
    let error = max_tokens(None, 512, 512).expect_err("no room");
    assert_eq!(error.field, "prompt");
    assert!(error.to_string().contains("512"), "{error}");
}

/// Answers that keep memory for each token get no more of them than there is memory, unless a request says so.
#[test]
fn a_request_that_does_not_say_gets_a_bounded_number_of_what_is_left() {
    let peer = v1::PeerDescription {
        context_len: 512,
        ..Default::default()
    };
    let max_tokens = |requested, unasked| max_tokens(requested, 12, 1, unasked, &peer);
    assert_eq!(max_tokens(None, 100), Ok(100));
    assert_eq!(max_tokens(None, 1_000), Ok(500));
    assert_eq!(max_tokens(Some(300), 100), Ok(300));
}

#[test]
fn a_prompt_for_an_encoder_takes_no_place_of_the_output() {
    let peer = v1::PeerDescription {
        context_len: 512,
        decoder_start_token_id: Some(0),
        ..Default::default()
    };
    let max_tokens = |requested, prompt| max_tokens(requested, prompt, 1, u32::MAX, &peer);
    assert_eq!(max_tokens(None, 512), Ok(511));
    assert_eq!(max_tokens(Some(511), 512), Ok(511));
    let beyond = Some(CONTEXT_LENGTH_EXCEEDED);
    for (requested, prompt, field, reason) in [
        (Some(512), 5, "max_tokens", beyond),
        (Some(0), 5, "max_tokens", None),
        (None, 513, "prompt", beyond),
    ] {
        let error = max_tokens(requested, prompt).expect_err(field);
        assert_eq!((&error.field[..], error.reason), (field, reason));
    }
}

#[test]
fn the_least_length_is_at_most_the_greatest() {
    assert_eq!(check_min_tokens(8, 8), Ok(()));
    let error = check_min_tokens(9, 8).expect_err("above").to_string();
    assert_eq!(error, "min_tokens: 9 is above max_tokens, which is 8");
}

#[test]
fn stops_are_bounded() {
    assert!(check_stops(&["a".to_owned()]).is_ok());
    assert!(check_stops(&vec!["a".to_owned(); 17]).is_err());
    assert!(check_stops(&[String::new()]).is_err());
    assert!(check_stops(&["a".repeat(257)]).is_err());
}

#[test]
fn distributions_that_fit_no_message_are_refused() {
    let method = |proposal: &str| {
        let spec = MethodSpec::new("rejection").with("proposal", proposal);
        Choice::resolve(&spec, Setup::at(1.0)).expect("a method")
    };
    let [dense, half, sparse] = ["dense:f32", "dense:f16", "sparse:32"].map(method);
    assert!(check_message(&dense, 64, 152_000, false).is_ok());
    let error = check_message(&dense, 64, 300_000, false).expect_err("74 MiB");
    assert_eq!(error.field, "settings.proposal");
    assert!(check_message(&half, 64, 300_000, false).is_ok());
    assert!(check_message(&sparse, 64, 300_000, false).is_ok());
    let error = check_message(&dense, 64, 152_000, true).expect_err("113 MiB");
    assert_eq!(error.field, "report_distributions");
    assert!(check_message(&dense, 4, 152_000, true).is_ok());
}
