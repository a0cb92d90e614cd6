//! Faults change how fast an answer comes, never what it says.

mod drafters;
mod links;
mod verifiers;

use wire::v1::GenerateRequest;

use crate::client::{Answer, With, collect, generate, request};
use crate::cluster::{Service, client};

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
