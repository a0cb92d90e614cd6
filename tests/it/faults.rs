//! Faults change how fast an answer comes, never what it says.

mod drafters;
mod links;
mod verifiers;

use wire::v1::GenerateRequest;

use crate::client::{With, generate, request};
use crate::cluster::Service;

const MAX_TOKENS: u32 = 120;

/// A long request, greedy or not by turns.
fn requested(index: usize, prompt: &str) -> GenerateRequest {
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
