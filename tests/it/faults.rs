//! Faults change how fast an answer comes, never what it says.

use std::slice::from_ref;
use std::time::Duration;

use wire::v1::{FinishReason, GenerateRequest, Origin};

use crate::client::{Answer, With, collect, generate, request};
use crate::cluster::{
    Cluster, Service, client, config, coordinator, draft, drafter, target, verifier,
};
use crate::prompts;
use crate::relay::Relay;
use crate::tampering::{Mode, Tampering};

const MAX_TOKENS: u32 = 120;

/// A long request, greedy or not by turns.
fn asked(index: usize, prompt: &str) -> GenerateRequest {
    let temperature = (index % 2) as f32;
    request(prompt, MAX_TOKENS)
        .temperature(temperature)
        .seed(index as u64)
        .ignoring_eos()
}

async fn target_only(coordinator: &Service, request: &GenerateRequest) -> Vec<u32> {
    generate(coordinator, request.clone().method("target-only"))
        .await
        .tokens
}

/// Generates, and calls `fault` once as soon as `after` tokens have come.
async fn with_fault(
    coordinator: &Service,
    request: GenerateRequest,
    after: usize,
    fault: impl FnOnce(),
) -> Answer {
    let parts = client(coordinator)
        .generate(request)
        .await
        .expect("in order")
        .into_inner();
    let mut fault = Some(fault);
    let answer = collect(parts, |tokens| {
        if tokens >= after
            && let Some(fault) = fault.take()
        {
            fault();
        }
    });
    let answer = answer.await;
    assert!(fault.is_none(), "the fault never happened");
    answer
}

#[tokio::test]
async fn a_drafter_killed_mid_stream_is_done_without() {
    let (verifier, _) = verifier(target()).await;
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        let (drafter, _) = drafter(draft()).await;
        let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
        let asked = asked(index, prompt);
        let expected = target_only(&coordinator, &asked).await;
        let answer = with_fault(&coordinator, asked, 20, || drop(drafter)).await;
        assert_eq!(answer.tokens, expected);
        assert_eq!(answer.finished.reason(), FinishReason::Length);
        assert!(answer.fallbacks() > 0, "the loss is told");
        assert!(answer.finished.exact);
    }
}

#[tokio::test]
async fn a_drafter_that_was_never_there_is_done_without() {
    let (verifier, _) = verifier(target()).await;
    let nobody = "http://127.0.0.1:9".to_owned();
    let coordinator = coordinator(config(&[nobody], &[verifier.url()])).await;
    let asked = asked(1, "Once upon a time");
    let expected = target_only(&coordinator, &asked).await;
    let answer = generate(&coordinator, asked).await;
    assert_eq!(answer.tokens, expected);
    assert_eq!(answer.finished.effective_method, "target-only");
    assert!(answer.fallbacks() > 0);
}

#[tokio::test]
async fn a_drafter_that_comes_back_is_used_again() {
    let (verifier, _) = verifier(target()).await;
    let (drafter, _) = drafter(draft()).await;
    let relay = Relay::start(drafter.address).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let asked = request("Once upon a time", 400).ignoring_eos();
    let expected = target_only(&coordinator, &asked).await;
    let parts = client(&coordinator)
        .generate(asked)
        .await
        .expect("in order")
        .into_inner();
    let (mut gone, mut back) = (false, false);
    let answer = collect(parts, |tokens| {
        if tokens >= 20 && !gone {
            gone = true;
            relay.lead_to(None);
        }
        if tokens >= 40 && !back {
            back = true;
            relay.lead_to(Some(drafter.address));
        }
    });
    let answer = answer.await;
    assert_eq!(answer.tokens, expected);
    assert!(gone && back);
    let fallbacks = answer.finished.speculation.expect("statistics").fallbacks;
    let after = fallbacks.last().expect("the loss is told").position as usize;
    let again = &answer.origins[after..];
    assert!(
        again.contains(&Origin::Accepted),
        "drafting goes on: {again:?}"
    );
}

#[tokio::test]
async fn each_reply_lost_once_changes_nothing() {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    for method in ["coupled", "rejection"] {
        // Each loss costs a pause, so a full sweep takes twenty of its prompts here.
        for (index, prompt) in prompts::mixed(3).iter().take(20).enumerate() {
            let sound = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
            let (tampering, url) =
                Tampering::start(Mode::LoseOnce, drafter.address, verifier.address).await;
            let lossy = coordinator(config(from_ref(&url), from_ref(&url))).await;
            let mut asked = asked(index, prompt).method(method);
            asked.max_tokens = Some(40);
            let expected = generate(&sound, asked.clone()).await;
            let answer = generate(&lossy, asked).await;
            // A retried round repeats its draws, so even rejection gives the same tokens.
            assert_eq!(answer.tokens, expected.tokens, "{method}");
            let statistics = answer.finished.speculation.clone().expect("statistics");
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
async fn a_session_moves_to_a_fresh_verifier_mid_stream() {
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        let (drafter, _) = drafter(draft()).await;
        let (old, _) = verifier(target()).await;
        let (fresh, _) = verifier(target()).await;
        let relay = Relay::start(old.address).await;
        let coordinator = coordinator(config(&[drafter.url()], &[relay.url()])).await;
        let asked = asked(index, prompt);
        let expected = target_only(&coordinator, &asked).await;
        let moved = || {
            relay.lead_to(Some(fresh.address));
            drop(old);
        };
        let answer = with_fault(&coordinator, asked, 30, moved).await;
        assert_eq!(answer.tokens, expected);
        assert!(answer.finished.speculation.expect("statistics").retries > 0);
        assert!(answer.finished.exact, "the same weights and kernels");
    }
}

#[tokio::test]
async fn a_session_moves_to_the_other_replica() {
    let (drafter, _) = drafter(draft()).await;
    let (first, first_monitor) = verifier(target()).await;
    let (second, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[first.url(), second.url()])).await;
    let asked = asked(0, "Once upon a time");
    let expected = target_only(&coordinator, &asked).await;
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
    let answer = with_fault(&coordinator, asked, 30, kill).await;
    assert_eq!(answer.tokens, expected);
    assert_eq!(
        answer.finished.speculation.expect("statistics").migrations,
        1
    );
}

#[tokio::test]
async fn connections_cut_again_and_again_change_nothing() {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let to_drafter = Relay::start(drafter.address).await;
    let to_verifier = Relay::start(verifier.address).await;
    let coordinator = coordinator(config(&[to_drafter.url()], &[to_verifier.url()])).await;
    let asked = asked(1, "Once upon a time");
    let expected = target_only(&coordinator, &asked).await;
    let parts = client(&coordinator)
        .generate(asked)
        .await
        .expect("in order")
        .into_inner();
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
    assert_eq!(answer.tokens, expected);
    let retries = answer.finished.speculation.expect("statistics").retries;
    assert!(cuts >= 3 && retries > 0, "{cuts} cuts, {retries} retries");
}

#[tokio::test]
async fn a_lost_verifier_ends_the_answer_with_an_error_and_what_came_is_right() {
    let cluster = Cluster::start(draft()).await;
    let asked = asked(1, "Once upon a time");
    let expected = target_only(&cluster.coordinator, &asked).await;
    let Cluster {
        verifier,
        coordinator,
        drafter,
        ..
    } = cluster;
    let answer = with_fault(&coordinator, asked, 30, || drop(verifier)).await;
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
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let relay = Relay::start(verifier.address).await;
    let coordinator = coordinator(config(&[drafter.url()], &[relay.url()])).await;
    generate(&coordinator, request("x", 4)).await;
    let mut asked = asked(0, "Once upon a time");
    asked.timeout_ms = 700;
    let address = silent.local_addr().expect("an address");
    let began = std::time::Instant::now();
    let answer = with_fault(&coordinator, asked, 10, || relay.lead_to(Some(address))).await;
    assert_eq!(
        answer.finished.error_code,
        tonic::Code::DeadlineExceeded as u32
    );
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_silent_drafter_is_not_waited_for_long() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = silent.local_addr().expect("an address");
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let relay = Relay::start(drafter.address).await;
    let mut config = config(&[relay.url()], &[verifier.url()]);
    config.draft_timeout_ms = 300.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let asked = asked(1, "Once upon a time");
    let expected = target_only(&coordinator, &asked).await;
    let began = std::time::Instant::now();
    let answer = with_fault(&coordinator, asked, 20, || relay.lead_to(Some(address))).await;
    assert_eq!(answer.tokens, expected);
    assert!(answer.fallbacks() > 0);
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_replica_that_says_nothing_is_passed_over() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let silent_url = format!("http://{}", silent.local_addr().expect("an address"));
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let sound = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let mut config = config(
        &[drafter.url(), silent_url.clone()],
        &[verifier.url(), silent_url],
    );
    config.round_timeout_ms = 400.try_into().expect("not zero");
    config.draft_timeout_ms = 200.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let asked = asked(1, "Once upon a time");
    let expected = target_only(&sound, &asked).await;
    // The tokenizer may be asked of the silent one first; a client would come back, too.
    while crate::client::try_generate(&coordinator, asked.clone())
        .await
        .is_err()
    {}
    for _ in 0..6 {
        assert_eq!(generate(&coordinator, asked.clone()).await.tokens, expected);
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
        let mut asked = asked(0, "Once upon a time");
        asked.max_tokens = Some(4);
        let answer = generate(&coordinator, asked).await;
        assert_eq!(answer.tokens.len(), 4, "beside ports from {first} on");
    }
}

#[tokio::test]
async fn a_request_that_runs_out_of_time_blames_nobody() {
    let cluster = Cluster::start(draft()).await;
    // The drafter is what it waits for when its time is up.
    let mut hurried = request("Once upon a time", 480)
        .ignoring_eos()
        .method("draft-only");
    hurried.timeout_ms = 10;
    let parts = client(&cluster.coordinator)
        .generate(hurried)
        .await
        .expect("in order");
    let answer = collect(parts.into_inner(), |_| {}).await;
    assert_eq!(
        answer.finished.error_code,
        tonic::Code::DeadlineExceeded as u32
    );
    let answer = generate(&cluster.coordinator, request("Once upon a time", 40)).await;
    assert!(answer.fallbacks() == 0 && answer.origins.contains(&Origin::Accepted));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_told_the_end_all_the_same() {
    let cluster = Cluster::start(draft()).await;
    let channel = tonic::transport::Channel::from_shared(cluster.coordinator.url());
    let narrow = channel
        .expect("a URL")
        .initial_stream_window_size(1_000)
        .connect_lazy();
    let mut client = wire::v1::coordinator_client::CoordinatorClient::new(narrow);
    let mut asked = request("Once upon a time", 480).ignoring_eos();
    asked.timeout_ms = 500;
    let parts = client.generate(asked).await.expect("in order").into_inner();
    tokio::time::sleep(Duration::from_millis(900)).await;
    let answer = collect(parts, |_| {}).await;
    assert_eq!(
        answer.finished.error_code,
        tonic::Code::DeadlineExceeded as u32
    );
    assert!(answer.tokens.len() < 480);
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
    let asked = asked(1, "Once upon a time");
    let expected = target_only(&coordinator, &asked).await;
    let restart = || {
        relay.lead_to(None);
        let (relay, address) = (relay.clone(), fresh.address);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            relay.lead_to(Some(address));
        });
    };
    let answer = with_fault(&coordinator, asked, 30, restart).await;
    assert_eq!(answer.tokens, expected);
}

#[tokio::test]
async fn a_verifier_restarted_with_another_model_is_noticed() {
    let (old, _) = verifier(target()).await;
    let mut renamed = target();
    renamed.name = "target-v2".to_owned();
    let (renamed, _) = verifier(renamed).await;
    let mut replaced = target();
    replaced.vocab_fingerprint = [9; 32];
    let (replaced, _) = verifier(replaced).await;
    let relay = Relay::start(old.address).await;
    let coordinator = coordinator(config(&[], &[relay.url()])).await;
    let asked = asked(0, "Once upon a time");
    let expected = generate(&coordinator, asked.clone()).await.tokens;
    // Another name for the same model changes nothing.
    relay.lead_to(Some(renamed.address));
    assert_eq!(generate(&coordinator, asked.clone()).await.tokens, expected);
    // Another vocabulary fails the request whose prompt is in the old one, and no other.
    relay.lead_to(Some(replaced.address));
    let refused = crate::client::try_generate(&coordinator, asked.clone())
        .await
        .expect("begun");
    assert_eq!(refused.finished.reason(), FinishReason::Error);
    assert!(
        refused.finished.error.contains("vocabularies differ"),
        "{}",
        refused.finished.error
    );
    assert_eq!(generate(&coordinator, asked).await.tokens, expected);
}
