//! What an engine keeps of one tenant's prompts, and others.

use std::collections::BTreeSet;

use serde_json::Value;
use wire::v1::GenerateRequest;

use super::{Fault, Sglang, over};
use crate::client::{generate, request, try_generate};

fn of_tenant(tenant: &str) -> GenerateRequest {
    GenerateRequest {
        tenant: tenant.to_owned(),
        ..request("Once upon a time", 4)
    }
}

/// The keys of what is asked of the engine for one request.
async fn keys(
    engine: &Sglang,
    coordinator: &crate::cluster::Service,
    requested: GenerateRequest,
) -> BTreeSet<String> {
    engine.keys();
    generate(coordinator, requested).await;
    let keys = engine.keys().into_iter();
    // The row that the verifier asks for itself, every other second, has none.
    let keys = keys.filter(|key| !key.is_null() && *key != Value::String(String::new()));
    keys.map(|key| key.as_str().expect("a text").to_owned())
        .collect()
}

#[tokio::test]
async fn tenants_share_nothing_and_requests_without_one_are_one_together() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let ask = async |tenant: &str| {
        let keys = keys(&engine, &over.coordinator, of_tenant(tenant)).await;
        assert_eq!(keys.len(), 1, "one key for all of a session: {keys:?}");
        keys.into_iter().next().expect("one")
    };
    let (one, again, other) = (ask("one").await, ask("one").await, ask("other").await);
    assert_eq!(one, again);
    assert_ne!(one, other);
    let (nobody, nobody_else) = (ask("").await, ask("").await);
    assert_eq!(nobody, nobody_else);
    assert!(nobody != one && nobody != other);
}

#[tokio::test]
async fn where_an_engine_cannot_part_tenants_named_ones_are_refused() {
    let engine = Sglang::start();
    engine.set_fault(Some(Fault::KnowsNoKeys));
    let over = over(&engine).await;
    generate(&over.coordinator, of_tenant("")).await;
    let refused = try_generate(&over.coordinator, of_tenant("one")).await;
    let error = match refused {
        Ok(answer) => answer.finished.error,
        Err(status) => status.message().to_owned(),
    };
    assert!(error.contains("verifier.remote.share_tenants"), "{error}");
}
