//! A verifier whose memory holds a few of many requests at a time.

use futures_util::future::join_all;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{DescribeRequest, GenerateRequest};

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{
    Cluster, config, coordinator, draft, drafter, drafter_with, eventually, target, verifier_with,
};
use crate::prompts;
use crate::same::assert_same;

#[tokio::test]
async fn many_requests_on_little_memory_equal_target_only() {
    let ample = Cluster::start(draft()).await;
    let (drafter, _) = drafter(draft()).await;
    let (verifier, monitor) = verifier_with(target(), |config| config.engine.kv_tokens = 512).await;
    let mut config = config(&[drafter.url()], &[verifier.url()]);
    // Most of the requests wait, most of the time.
    config.round_timeout_ms = 120_000.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let prompts = prompts::mixed(8);
    let requested: Vec<_> = (0..64_u64)
        .map(|index| {
            let prompt = &prompts[index as usize % prompts.len()];
            let temperature = (index % 2) as f32;
            let requested = request(prompt, 12).temperature(temperature).seed(index);
            requested.draft_len(1 + index as u32 % 5)
        })
        .collect();
    let alone = requested.iter().map(|requested| {
        let requested = requested.clone().method("target-only");
        generate(&ample.coordinator, requested)
    });
    let alone = join_all(alone).await;
    let together = requested
        .iter()
        .map(|requested| generate(&coordinator, requested.clone()));
    let together = join_all(together).await;
    for ((requested, together), alone) in requested.iter().zip(&together).zip(&alone) {
        assert_same(requested, &together.tokens, &alone.tokens);
        assert!(together.finished.exact && together.fallbacks() == 0);
    }
    let memory = monitor.engine();
    assert_eq!(memory.budget_tokens, 512);
    assert!(
        memory.evictions > 0 && memory.reprefilled_tokens > 0,
        "{memory:?}"
    );
    assert_eq!(ample.target_monitor.engine().evictions, 0);
    eventually("no sequence is held", || monitor.engine().sequences == 0).await;
    // What they began with may stay, within the budget.
    let memory = monitor.engine();
    assert!(memory.kv_tokens <= memory.budget_tokens, "{memory:?}");
}

/// A tree's nodes take room side by side, beyond the sequence's end: the longest sequence that is let in
/// leaves room for them.
#[tokio::test]
async fn the_longest_sequence_leaves_room_for_a_tree_at_its_end() {
    let ample = Cluster::start(draft()).await;
    let (drafter, _) = drafter(draft()).await;
    let (verifier, monitor) = verifier_with(target(), |config| config.engine.kv_tokens = 192).await;
    let mut peer = VerifierClient::new(verifier.channel());
    let described = peer.describe(DescribeRequest {}).await.expect("described");
    let longest = described.into_inner().context_len;
    assert_eq!(longest, 192 - 64);
    let (small, _) = drafter_with(draft(), |config| config.engine.kv_tokens = 192).await;
    let mut peer = DrafterClient::new(small.channel());
    let described = peer.describe(DescribeRequest {}).await.expect("described");
    assert_eq!(described.into_inner().context_len, longest);
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let requested = |max_tokens| {
        let requested = request("Once upon a time", max_tokens).ignoring_eos();
        // Sixty-four nodes, as many as a round may have.
        requested.draft_len(8).with("tree", "comb:8")
    };
    let prompt = generate(&ample.coordinator, requested(1)).await;
    let max_tokens = longest - prompt.started.prompt_tokens;
    let answer = generate(&coordinator, requested(max_tokens)).await;
    let alone = request("Once upon a time", max_tokens).ignoring_eos();
    let alone = generate(&ample.coordinator, alone.method("target-only")).await;
    assert_eq!(answer.tokens, alone.tokens);
    assert_eq!(answer.tokens.len() as u32, max_tokens);
    assert!(answer.finished.exact && answer.fallbacks() == 0);
    eventually("no sequence is held", || monitor.engine().sequences == 0).await;
    // What they began with may stay, within the budget.
    let memory = monitor.engine();
    assert!(memory.kv_tokens <= memory.budget_tokens, "{memory:?}");
}

#[tokio::test]
async fn a_drafter_shares_beginnings_within_a_tenant_where_that_is_allowed() {
    let (sharing, monitor) = drafter(draft()).await;
    let (alone, alone_monitor) =
        drafter_with(draft(), |config| config.engine.prefix_sharing = false).await;
    let (verifier, _) = verifier_with(target(), |_| {}).await;
    let shared = || monitor.engine().shared_tokens;
    for (drafter, tenant, shares) in [
        (&sharing, "acme", false),
        (&sharing, "acme", true),
        (&sharing, "bolt", false),
        // Clients that show no token and name no tenant are one.
        (&sharing, "", false),
        (&sharing, "", true),
        (&alone, "acme", false),
        (&alone, "acme", false),
    ] {
        let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
        let before = shared();
        let requested = GenerateRequest {
            tenant: tenant.to_owned(),
            ..request(&"Once upon a time there was a cat. ".repeat(20), 8)
        };
        let answer = generate(&coordinator, requested).await;
        assert_eq!(answer.fallbacks(), 0);
        assert_eq!(shared() > before, shares, "'{tenant}'");
        eventually("the session is over", || monitor.engine().sequences == 0).await;
    }
    assert_eq!(alone_monitor.engine().shared_tokens, 0);
}

#[tokio::test]
async fn what_cannot_fit_is_refused_at_once() {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, monitor) = verifier_with(target(), |config| config.engine.kv_tokens = 150).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    // Two pages of 64 tokens, one of which is for a tree at the end.
    let refused = try_generate(&coordinator, request("Once upon a time", 70)).await;
    let status = refused.expect_err("refused");
    assert!(status.message().contains("64"), "{status}");
    assert_eq!(monitor.engine().pages, 0);
    let answer = generate(&coordinator, request("Once upon a time", 20)).await;
    assert!(answer.finished.exact);
}
