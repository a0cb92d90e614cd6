//! A verifier whose memory holds a few of many requests at a time.

use futures_util::future::join_all;

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{
    Cluster, config, coordinator, draft, drafter, eventually, target, verifier_with,
};
use crate::prompts;

#[tokio::test]
async fn many_requests_on_little_memory_equal_target_only() {
    let ample = Cluster::start(draft()).await;
    let (drafter, _) = drafter(draft()).await;
    let (verifier, monitor) = verifier_with(target(), |config| config.kv_tokens = 512).await;
    let mut config = config(&[drafter.url()], &[verifier.url()]);
    // Most of the requests wait, most of the time.
    config.round_timeout_ms = 120_000.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let prompts = prompts::mixed(8);
    let asked: Vec<_> = (0..64_u64)
        .map(|index| {
            let prompt = &prompts[index as usize % prompts.len()];
            let temperature = (index % 2) as f32;
            let asked = request(prompt, 12).temperature(temperature).seed(index);
            asked.draft_len(1 + index as u32 % 5)
        })
        .collect();
    let alone = asked.iter().map(|asked| {
        let asked = asked.clone().method("target-only");
        generate(&ample.coordinator, asked)
    });
    let alone = join_all(alone).await;
    let together = asked
        .iter()
        .map(|asked| generate(&coordinator, asked.clone()));
    let together = join_all(together).await;
    for (together, alone) in together.iter().zip(&alone) {
        assert_eq!(together.tokens, alone.tokens);
        assert!(together.finished.exact && together.fallbacks() == 0);
    }
    let memory = monitor.memory();
    assert_eq!(memory.budget_tokens, 512);
    assert!(
        memory.evictions > 0 && memory.reprefilled_tokens > 0,
        "{memory:?}"
    );
    assert_eq!(ample.target_monitor.memory().evictions, 0);
    eventually("no page in use", || monitor.memory().pages == 0).await;
}

#[tokio::test]
async fn what_cannot_fit_is_refused_at_once() {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, monitor) = verifier_with(target(), |config| config.kv_tokens = 150).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    // Two pages of 64 tokens, one of which is for a tree at the end.
    let refused = try_generate(&coordinator, request("Once upon a time", 70)).await;
    let status = refused.expect_err("refused");
    assert!(status.message().contains("64"), "{status}");
    assert_eq!(monitor.memory().pages, 0);
    let answer = generate(&coordinator, request("Once upon a time", 20)).await;
    assert!(answer.finished.exact);
}
