//! What a session uses is what the peer that it runs at says by then.

use wire::v1::generate_request::Prompt;
use wire::v1::{ChatMessage, FinishReason};

use crate::client::{With, generate, request, try_generate, with_fault};
use crate::cluster::{config, coordinator, draft, drafter, target, verifier, verifier_with};
use crate::relay::Relay;

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_restarted_with_shorter_blocks_is_asked_shorter_blocks() {
    let (drafter, _) = drafter(draft()).await;
    let (long, _) = verifier(target()).await;
    let (short, _) = verifier_with(target(), |config| {
        config.max_draft_tokens = 3.try_into().expect("not zero");
    })
    .await;
    let relay = Relay::start(long.address).await;
    let coordinator = coordinator(config(&[drafter.url()], &[relay.url()])).await;
    let requested = request("Once upon a time", 60).draft_len(12).ignoring_eos();
    let expected = generate(&coordinator, requested.clone()).await;
    // In the middle of a request, and before others.
    let moved = with_fault(&coordinator, requested.clone(), 10, || {
        relay.lead_to(Some(short.address));
    })
    .await;
    assert_eq!(moved.finished.error, "");
    assert_eq!(moved.tokens, expected.tokens);
    for _ in 0..3 {
        let answer = generate(&coordinator, requested.clone()).await;
        assert_eq!((answer.tokens.len(), answer.fallbacks()), (60, 0));
        assert_eq!(answer.tokens, expected.tokens);
        let statistics = answer.statistics();
        assert!(
            statistics
                .per_step_drafted
                .iter()
                .all(|&drafted| drafted <= 3)
        );
        assert_eq!(statistics.retries, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_restarted_with_less_room_refuses_by_field_and_at_once() {
    let (large, _) = verifier(target()).await;
    let (small, _) = verifier_with(target(), |config| config.engine.kv_tokens = 192).await;
    let relay = Relay::start(large.address).await;
    let coordinator = coordinator(config(&[], &[relay.url()])).await;
    let requested = request("Once upon a time", 300).ignoring_eos();
    generate(&coordinator, requested.clone()).await;
    // Under way it ends with an error that says why, and not with tokens that stop half-way in silence.
    let cut = with_fault(&coordinator, requested.clone(), 10, || {
        relay.lead_to(Some(small.address));
    })
    .await;
    assert_eq!(cut.finished.reason(), FinishReason::Error);
    assert!(
        cut.finished.error.contains("max_tokens"),
        "{}",
        cut.finished.error
    );
    let refused = try_generate(&coordinator, requested)
        .await
        .expect_err("no room");
    assert!(refused.message().starts_with("max_tokens"), "{refused:?}");
    generate(&coordinator, request("Once upon a time", 50)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_of_the_same_vocabulary_brings_its_end_tokens_and_its_template() {
    let (base, _) = verifier(target()).await;
    let alone = coordinator(config(&[], &[base.url()])).await;
    let requested = request("Once upon a time", 40).temperature(0.0);
    let expected = generate(&alone, requested.clone().ignoring_eos())
        .await
        .tokens;
    let mut instruct = target();
    // What the base says next, so that the end is sure to come.
    instruct.eos_token_ids = vec![expected[5]];
    instruct.text.chat_template = Some("{{ messages[0].content }}".to_owned());
    instruct.numerics.weights = "instruct".to_owned();
    let (instruct, _) = verifier(instruct).await;
    let relay = Relay::start(base.address).await;
    let coordinator = coordinator(config(&[], &[relay.url()])).await;
    generate(&coordinator, requested.clone()).await;
    relay.lead_to(Some(instruct.address));
    // The connection is seen to be gone before anything is asked on it.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let answer = generate(&coordinator, requested.clone()).await;
    let end = expected.iter().position(|token| *token == expected[5]);
    assert_eq!(answer.tokens, expected[..=end.expect("it is there")]);
    assert_eq!(answer.finished.reason(), FinishReason::Stop);
    let mut chat = requested;
    chat.prompt = None::<Prompt>;
    chat.messages = vec![ChatMessage {
        role: "user".to_owned(),
        content: "Once upon a time".to_owned(),
        ..Default::default()
    }];
    generate(&coordinator, chat).await;
}
