//! Verifiers that are lost, restarted or silent, and replicas that sessions move to.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::net::TcpListener;
use wire::v1::FinishReason;

use super::{requested, target_only};
use crate::client::{generate, request, with_fault};
use crate::cluster::{
    Cluster, PATIENCE, config, coordinator, draft, drafter, pair, silent, target, verifier,
};
use crate::prompts;
use crate::relay::Relay;
use crate::same::assert_same;

#[tokio::test]
async fn a_session_moves_to_a_fresh_verifier_mid_stream() {
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        let (drafter, _) = drafter(draft()).await;
        let (old, _) = verifier(target()).await;
        let (fresh, _) = verifier(target()).await;
        let relay = Relay::start(old.address).await;
        let coordinator = coordinator(config(&[drafter.url()], &[relay.url()])).await;
        let requested = requested(index, prompt);
        let expected = target_only(&coordinator, &requested).await;
        let moved = || {
            relay.lead_to(Some(fresh.address));
            drop(old);
        };
        let answer = with_fault(&coordinator, requested.clone(), 30, moved).await;
        assert_same(&requested, &answer.tokens, &expected);
        assert!(answer.statistics().retries > 0);
        assert!(answer.finished.exact, "the same weights and kernels");
    }
}

#[tokio::test]
async fn a_session_moves_to_the_other_replica() {
    let (drafter, _) = drafter(draft()).await;
    let (first, first_monitor) = verifier(target()).await;
    let (second, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[first.url(), second.url()])).await;
    let requested = requested(0, "Once upon a time");
    let expected = target_only(&coordinator, &requested).await;
    // Whichever replica the session is on, it is the one that is killed.
    let mut replicas = Some((first, second));
    let kill = || {
        let (first, second) = replicas.take().expect("once");
        let survivor = if first_monitor.sessions().attached > 0 {
            drop(first);
            second
        } else {
            drop(second);
            first
        };
        std::mem::forget(survivor);
    };
    let answer = with_fault(&coordinator, requested.clone(), 30, kill).await;
    assert_same(&requested, &answer.tokens, &expected);
    assert_eq!(answer.statistics().migrations, 1);
}

#[tokio::test]
async fn a_lost_verifier_ends_the_answer_with_an_error_and_what_came_is_right() {
    let cluster = Cluster::start(draft()).await;
    let requested = requested(1, "Once upon a time");
    let expected = target_only(&cluster.coordinator, &requested).await;
    let Cluster {
        verifier,
        coordinator,
        drafter,
        ..
    } = cluster;
    let answer = with_fault(&coordinator, requested, 30, || drop(verifier)).await;
    assert_eq!(answer.finished.reason(), FinishReason::Error);
    assert!(
        answer.finished.error.contains("verifier"),
        "{}",
        answer.finished.error
    );
    assert_eq!(answer.finished.error_code, tonic::Code::Unavailable as u32);
    assert!(answer.tokens.len() >= 30 && expected.starts_with(&answer.tokens));
    drop(drafter);
}

#[tokio::test]
async fn a_silent_verifier_is_not_waited_for_beyond_the_deadline() {
    // It accepts connections and never says a word.
    let (_silent, address, _) = silent().await;
    let (drafter, verifier) = pair().await;
    let relay = Relay::start(verifier.address).await;
    let mut config = config(&[drafter.url()], &[relay.url()]);
    config.round_timeout_ms = 300_000.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    generate(&coordinator, request("x", 4)).await;
    let mut requested = requested(0, "Once upon a time");
    // Ten tokens take less, on a busy machine too.
    requested.timeout_ms = 3_000;
    let began = std::time::Instant::now();
    let answer = with_fault(&coordinator, requested, 10, || relay.lead_to(Some(address))).await;
    assert_eq!(
        answer.finished.error_code,
        tonic::Code::DeadlineExceeded as u32
    );
    assert!(began.elapsed() < PATIENCE);
}

/// Its connections stand and nothing comes: pings find that out, and the attempts after that are few.
#[tokio::test]
async fn a_verifier_that_hangs_is_given_up_in_twenty_seconds() {
    let (drafter, verifier) = pair().await;
    let relay = Relay::start(verifier.address).await;
    let mut config = config(&[drafter.url()], &[relay.url()]);
    config.verifier_retries = 5;
    config.round_timeout_ms = 300_000.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let requested = requested(1, "Once upon a time");
    let began = std::time::Instant::now();
    let answer = with_fault(&coordinator, requested, 20, || relay.hold_after(0)).await;
    assert_eq!(answer.finished.error_code, tonic::Code::Unavailable as u32);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test]
async fn a_verifier_that_is_started_anew_is_waited_for() {
    let (drafter, _) = drafter(draft()).await;
    let (old, _) = verifier(target()).await;
    let (fresh, _) = verifier(target()).await;
    let relay = Relay::start(old.address).await;
    let mut config = config(&[drafter.url()], &[relay.url()]);
    config.verifier_retries = 5;
    let coordinator = coordinator(config).await;
    let requested = requested(1, "Once upon a time");
    let expected = target_only(&coordinator, &requested).await;
    let restart = || relay.restarts_as(fresh.address);
    let answer = with_fault(&coordinator, requested.clone(), 30, restart).await;
    assert_same(&requested, &answer.tokens, &expected);
}

#[tokio::test]
async fn a_verifier_restarted_with_another_model_is_noticed() {
    let (old, _) = verifier(target()).await;
    let mut renamed = target();
    renamed.outline.name = "target-v2".to_owned();
    let (renamed, _) = verifier(renamed).await;
    let mut replaced = target();
    replaced.outline.vocab_fingerprint = [9; 32];
    let (replaced, _) = verifier(replaced).await;
    let relay = Relay::start(old.address).await;
    let coordinator = coordinator(config(&[], &[relay.url()])).await;
    let requested = requested(0, "Once upon a time");
    let expected = generate(&coordinator, requested.clone()).await.tokens;
    // Another name for the same model changes nothing.
    relay.lead_to(Some(renamed.address));
    assert_eq!(
        generate(&coordinator, requested.clone()).await.tokens,
        expected
    );
    // Another vocabulary fails the request whose prompt is in the old one, and no other.
    let refused = with_fault(&coordinator, requested.clone(), 10, || {
        relay.lead_to(Some(replaced.address));
    })
    .await;
    assert_eq!(refused.finished.reason(), FinishReason::Error);
    assert!(
        refused.finished.error.contains("vocabularies differ"),
        "{}",
        refused.finished.error
    );
    assert_eq!(generate(&coordinator, requested).await.tokens, expected);
}

#[tokio::test]
async fn a_replica_that_says_nothing_is_passed_over() {
    let (_silent, _, silent_url) = silent().await;
    let (drafter, verifier) = pair().await;
    let sound = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let mut config = config(
        &[drafter.url(), silent_url.clone()],
        &[verifier.url(), silent_url],
    );
    config.round_timeout_ms = 1_500.try_into().expect("not zero");
    config.draft_timeout_ms = 800.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let requested = requested(1, "Once upon a time");
    let expected = target_only(&sound, &requested).await;
    for _ in 0..6 {
        assert_eq!(
            generate(&coordinator, requested.clone()).await.tokens,
            expected
        );
    }
}

#[tokio::test]
async fn the_first_request_finds_the_one_replica_that_is_there() {
    let (verifier, _) = verifier(target()).await;
    // Which of them is asked first depends on their addresses.
    for first in (801_u16..841).step_by(4) {
        let nobody = (first..first + 4).map(|port| format!("http://127.0.0.1:{port}"));
        let verifiers: Vec<String> = nobody.chain([verifier.url()]).collect();
        let coordinator = coordinator(config(&[], &verifiers)).await;
        let mut requested = requested(0, "Once upon a time");
        requested.max_tokens = Some(4);
        let answer = generate(&coordinator, requested).await;
        assert_eq!(answer.tokens.len(), 4, "beside ports from {first} on");
    }
}

/// Its URL; it hangs up on whoever connects, after a while.
async fn hanging_up() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(1_200)).await;
                drop(connection);
            });
        }
    });
    url
}

/// The first of two that fail slowly counts as alive again when the second has failed.
#[tokio::test]
async fn replicas_that_fail_slowly_do_not_hide_the_one_that_is_there() {
    let (verifier, _) = verifier(target()).await;
    // Which of them is asked first depends on their addresses.
    let tries = (0..12).map(async |_| {
        let urls = [hanging_up().await, hanging_up().await, verifier.url()];
        let coordinator = coordinator(config(&[], &urls)).await;
        let mut requested = requested(0, "Once upon a time");
        requested.max_tokens = Some(4);
        assert_eq!(generate(&coordinator, requested).await.tokens.len(), 4);
    });
    join_all(tries).await;
}
