//! Peers that are lost while a grammar is followed.

use super::schemas::all;
use super::{under, validates};
use crate::client::{With, generate, with_fault};
use crate::cluster::{config, coordinator, draft, drafter, target, verifier};
use crate::relay::Relay;
use crate::same::assert_same;

/// The longest of the schemas.
fn long() -> serde_json::Value {
    let (_, schema) = all(0)
        .into_iter()
        .find(|(name, _)| name == "invoice")
        .expect("it");
    schema
}

#[tokio::test]
async fn a_killed_drafter_changes_nothing() {
    let (verifier, _) = verifier(target()).await;
    for temperature in [0.0, 1.0] {
        let (drafter, _) = drafter(draft()).await;
        let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
        let requested = under(&long(), 200).temperature(temperature).draft_len(3);
        let expected = generate(&coordinator, requested.clone().method("target-only")).await;
        let answer = with_fault(&coordinator, requested.clone(), 8, || drop(drafter)).await;
        assert_same(&requested, &answer.tokens, &expected.tokens);
        validates(&answer, &long(), "killed");
    }
}

#[tokio::test]
async fn a_fresh_verifier_follows_the_grammar_from_where_it_was() {
    for (temperature, schedule) in [
        (0.0, "rounds"),
        (1.0, "rounds"),
        (0.0, "stream"),
        (1.0, "stream"),
    ] {
        let (drafter, _) = drafter(draft()).await;
        let (old, _) = verifier(target()).await;
        let (fresh, _) = verifier(target()).await;
        let relay = Relay::start(old.address).await;
        let coordinator = coordinator(config(&[drafter.url()], &[relay.url()])).await;
        let requested = under(&long(), 200).temperature(temperature);
        let expected = generate(&coordinator, requested.clone().method("target-only")).await;
        let moved = || {
            relay.lead_to(Some(fresh.address));
            drop(old);
        };
        let requested = requested.with("schedule", schedule);
        let answer = with_fault(&coordinator, requested.clone(), 8, moved).await;
        assert_same(&requested, &answer.tokens, &expected.tokens);
        validates(&answer, &long(), "moved");
    }
}
