//! What requests begin with alike is computed once, within a tenant, and told.

use wire::v1::GenerateRequest;

use crate::client::{Answer, With, generate, request};
use crate::cluster::{Cluster, Service, config, coordinator, draft, target, verifier};

/// A prompt of some three pages, of which other numbers share nothing.
pub(crate) fn prompt(number: usize) -> String {
    format!("{number} cats. ").repeat(40)
}

/// Asks for a few tokens after `prompt`.
pub(crate) async fn ask(
    coordinator: &Service,
    prompt: &str,
    change: impl FnOnce(&mut GenerateRequest),
) -> Answer {
    let mut requested = request(prompt, 8).ignoring_eos();
    change(&mut requested);
    generate(coordinator, requested).await
}

/// Tokens of the prompt that were not computed.
pub(crate) fn cached(answer: &Answer) -> u32 {
    answer.finished.usage.expect("usage").cached_prompt_tokens
}

#[tokio::test]
async fn a_second_turn_finds_the_first_within_its_tenant_and_salt() {
    let cluster = Cluster::start(draft()).await;
    let ask = async |prompt: &str, tenant: &str, salt: &str, reuse: Option<bool>| {
        ask(&cluster.coordinator, prompt, |requested| {
            tenant.clone_into(&mut requested.tenant);
            salt.clone_into(&mut requested.cache_salt);
            requested.cache_prompt = reuse;
        })
        .await
    };
    let first = ask(&prompt(1), "", "", None).await;
    assert_eq!(cached(&first), 0);
    let turn = format!("{}{} More.", prompt(1), first.text);
    let expected = ask(&turn, "", "", Some(false)).await;
    assert_eq!(cached(&expected), 0);
    for (tenant, salt, reuse, is_found) in [
        ("", "", None, true),
        ("", "", Some(true), true),
        ("", "", Some(false), false),
        ("", "salt", None, false),
        ("", "salt", None, true),
        ("", "other", None, false),
        ("acme", "", None, false),
        ("acme", "", None, true),
        // Neither a name that goes on as a salt does, nor the other way round.
        ("acmesalt", "", None, false),
        ("acme", "salt", None, false),
        ("acmes", "alt", None, false),
    ] {
        let answer = ask(&turn, tenant, salt, reuse).await;
        let what = format!("'{tenant}', '{salt}', {reuse:?}");
        assert_eq!(cached(&answer) >= 128, is_found, "{what}");
        assert_eq!(answer.tokens, expected.tokens, "{what}");
    }
}

/// Whichever way the target goes through the text.
#[tokio::test]
async fn every_way_of_decoding_tells_what_was_cached() {
    let cluster = Cluster::start(draft()).await;
    let text = prompt(50);
    let first = ask(&cluster.coordinator, &text, |_| {}).await;
    for (method, schedule) in [
        ("target-only", ""),
        ("coupled", "rounds"),
        ("coupled", "stream"),
    ] {
        let answer = ask(&cluster.coordinator, &text, |requested| {
            method.clone_into(&mut requested.method);
            if !schedule.is_empty() {
                requested.set("schedule", schedule);
            }
        });
        let answer = answer.await;
        assert!(cached(&answer) >= 128, "{method} {schedule}");
        assert_eq!(answer.tokens, first.tokens, "{method} {schedule}");
    }
}

/// By the names of sessions half of them would go to the other.
#[tokio::test]
async fn a_conversation_goes_where_its_beginning_lies() {
    let verifiers = [verifier(target()).await, verifier(target()).await];
    let urls: Vec<_> = verifiers.iter().map(|(service, _)| service.url()).collect();
    let coordinator = coordinator(config(&[], &urls)).await;
    for number in 0..16 {
        let first = ask(&coordinator, &prompt(100 + number), |_| {}).await;
        assert_eq!(cached(&first), 0, "{number}");
        let turn = format!("{}{} More.", prompt(100 + number), first.text);
        let second = ask(&coordinator, &turn, |_| {}).await;
        assert!(cached(&second) >= 128, "{number}");
    }
    let forwarded = verifiers
        .each_ref()
        .map(|(_, monitor)| monitor.engine().forwarded_tokens);
    // A conversation is some 300 tokens; which verifier it goes to depends on their addresses.
    assert!(
        forwarded.iter().all(|tokens| *tokens > 250),
        "{forwarded:?}"
    );
}
