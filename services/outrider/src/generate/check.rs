//! `--check-against`: the same request by another method, whose tokens must be the same.

use anyhow::bail;
use client::{Answer, Client};
use wire::v1;

use super::explain;

/// Asks for `request` again with the seed of `answer`, by `method`, and compares the tokens. Of what is asked
/// for, the choice of a method and of its axes does not count.
///
/// # Errors
/// If that cannot be answered, or the tokens are others.
pub(super) async fn compare(
    client: &Client,
    url: &str,
    request: v1::GenerateRequest,
    answer: &Answer,
    method: &str,
) -> anyhow::Result<()> {
    let request = v1::GenerateRequest {
        model: request.model,
        prompt: request.prompt,
        messages: request.messages,
        max_tokens: request.max_tokens,
        sampling: request.sampling,
        seed: Some(answer.started.seed),
        stop: request.stop,
        stop_token_ids: request.stop_token_ids,
        ignore_eos: request.ignore_eos,
        method: method.to_owned(),
        ..Default::default()
    };
    let generated = async { client.generate(request).await?.collect().await };
    let other = generated.await.map_err(|error| explain(url, error))?;
    let tokens = same(&answer.token_ids, &other.token_ids, method)?;
    anstream::eprintln!("{method} generates the same {tokens} tokens");
    Ok(())
}

/// The number of tokens, if they are the same.
fn same(ours: &[u32], theirs: &[u32], method: &str) -> anyhow::Result<usize> {
    let shared = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    if shared == ours.len().max(theirs.len()) {
        return Ok(shared);
    }
    bail!(
        "--check-against: {method} generates other tokens from output position {shared} on: {} instead of {}",
        said(theirs, shared),
        said(ours, shared)
    )
}

fn said(tokens: &[u32], position: usize) -> String {
    tokens
        .get(position)
        .map_or_else(|| "the end".to_owned(), u32::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_same_only_if_all_are() {
        assert_eq!(same(&[], &[], "x").ok(), Some(0));
        assert_eq!(same(&[1, 2], &[1, 2], "x").ok(), Some(2));
        let reported = |ours: &[u32], theirs: &[u32]| match same(ours, theirs, "target-only") {
            Ok(tokens) => panic!("{tokens} tokens"),
            Err(error) => error.to_string(),
        };
        let other = reported(&[1, 2, 3], &[1, 7, 3]);
        assert!(other.contains("target-only") && other.contains("position 1"));
        assert!(other.contains("7 instead of 2"), "{other}");
        assert!(reported(&[1, 2], &[1]).contains("the end instead of 2"));
        assert!(reported(&[1], &[1, 2]).contains("2 instead of the end"));
    }
}
