//! Replies lost, connections cut, time that runs out.

use std::slice::from_ref;
use std::time::Duration;

use wire::v1::Origin;

use super::{requested, target_only};
use crate::client::{With, begin, begin_unread, collect, generate, request};
use crate::cluster::{Cluster, config, coordinator, draft, pair};
use crate::prompts;
use crate::relay::Relay;
use crate::same::assert_same;
use crate::tampering::{Mode, Tampering};

#[tokio::test]
async fn each_reply_lost_once_changes_nothing() {
    let (drafter, verifier) = pair().await;
    for method in ["coupled", "rejection"] {
        // Each loss costs a pause, so a full sweep takes twenty of its prompts here.
        for (index, prompt) in prompts::mixed(3).iter().take(20).enumerate() {
            let sound = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
            let (tampering, url) =
                Tampering::start(Mode::LoseOnce, drafter.address, verifier.address).await;
            let lossy = coordinator(config(from_ref(&url), from_ref(&url))).await;
            let mut requested = requested(index, prompt).method(method);
            requested.max_tokens = Some(40);
            let expected = generate(&sound, requested.clone()).await;
            let answer = generate(&lossy, requested).await;
            // A retried round repeats its draws, so even rejection gives the same tokens.
            assert_eq!(answer.tokens, expected.tokens, "{method}");
            let statistics = answer.statistics();
            assert!(tampering.count() >= 2 * statistics.num_spec_steps as usize);
            assert!(statistics.retries as usize >= tampering.count() && answer.fallbacks() == 0);
            assert!(
                tampering.replayed() > 0,
                "peers remember what they answered"
            );
        }
    }
}

#[tokio::test]
async fn connections_cut_again_and_again_change_nothing() {
    let (drafter, verifier) = pair().await;
    let to_drafter = Relay::start(drafter.address).await;
    let to_verifier = Relay::start(verifier.address).await;
    let coordinator = coordinator(config(&[to_drafter.url()], &[to_verifier.url()])).await;
    let requested = requested(1, "Once upon a time");
    let expected = target_only(&coordinator, &requested).await;
    let parts = begin(&coordinator, requested.clone()).await;
    let (mut next, mut cuts) = (10, 0);
    let answer = collect(parts, |tokens| {
        if tokens >= next {
            next = tokens + 25;
            cuts += 1;
            to_drafter.cut();
            to_verifier.cut();
        }
    });
    let answer = answer.await;
    assert_same(&requested, &answer.tokens, &expected);
    let retries = answer.statistics().retries;
    assert!(cuts >= 3 && retries > 0, "{cuts} cuts, {retries} retries");
}

#[tokio::test]
async fn a_request_that_runs_out_of_time_blames_nobody() {
    let (drafter, verifier) = pair().await;
    let relay = Relay::start(drafter.address).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let mut hurried = request("Once upon a time", 40).method("draft-only");
    generate(&coordinator, hurried.clone()).await;
    // The drafter is what it waits for when its time is up.
    relay.hold_after(0);
    hurried.timeout_ms = 300;
    let answer = collect(begin(&coordinator, hurried).await, |_| {}).await;
    assert_eq!(
        answer.finished.error_code,
        tonic::Code::DeadlineExceeded as u32
    );
    relay.release();
    let answer = generate(&coordinator, request("Once upon a time", 40)).await;
    assert!(answer.fallbacks() == 0 && answer.origins.contains(&Origin::Accepted));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_told_the_end_all_the_same() {
    let cluster = Cluster::start(draft()).await;
    let mut requested = request("Once upon a time", 480).ignoring_eos();
    requested.timeout_ms = 500;
    let parts = begin_unread(&cluster.coordinator, requested).await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    let answer = collect(parts, |_| {}).await;
    assert_eq!(
        answer.finished.error_code,
        tonic::Code::DeadlineExceeded as u32
    );
    assert!(answer.tokens.len() < 480);
}
