//! Credentials in order, and each of them wrong.

use net::Credentials;
use net::auth::AuthConfig;
use net::fault::describe;
use ops::process::Process;
use tonic::{Code, Status};
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{DescribeRequest, FinishReason, ListMethodsRequest, ListModelsRequest};

use super::authority::{Authority, write};
use super::world::{ACME, ANYONE, World, channel, try_generate};
use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft};

#[tokio::test]
async fn what_is_generated_under_tls_and_tokens_is_what_is_generated_in_clear() {
    let clear = Cluster::start(draft()).await;
    let world = World::new();
    let [_drafter, _verifier, coordinator] = world.services().await;
    let client = world.of_client(ANYONE);
    for method in ["coupled", "rejection", "target-only"] {
        let requested = request("Once upon a time", 40).method(method);
        let secured = try_generate(&coordinator, &client, requested.clone()).await;
        let secured = secured.expect("let in");
        let in_clear = generate(&clear.coordinator, requested).await;
        assert_eq!(secured.tokens, in_clear.tokens);
        assert_eq!(secured.fallbacks(), 0, "{:?}", secured.finished);
        assert_ne!(secured.finished.reason(), FinishReason::Error);
    }
    // Through the coordinator's own routes the peers can be seen.
    let mut coordinator = CoordinatorClient::new(channel(&coordinator, &client));
    let models = coordinator.list_models(ListModelsRequest {}).await;
    let models = models.expect("let in").into_inner().models;
    assert!(models[0].verifier.is_some() && models[0].drafter.is_some());
}

#[tokio::test]
async fn no_service_answers_without_its_token() {
    let world = World::new();
    let [drafter, verifier, coordinator] = world.services().await;
    // Its own certificate, and the token of another door.
    let client = world.of_client(ACME);
    let nothing = Process {
        credentials: Credentials {
            tls: client.credentials.tls.clone(),
            ..Credentials::default()
        },
        ..Process::default()
    };
    let is_told = |status: Status, parts: [&str; 2]| {
        let message = status.message();
        assert_eq!(status.code(), Code::Unauthenticated);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    for (process, said) in [(&client, "not known"), (&nothing, "no token was shown")] {
        let mut drafting = DrafterClient::new(channel(&drafter, process));
        let mut verifying = VerifierClient::new(channel(&verifier, process));
        for described in [
            drafting.describe(DescribeRequest {}).await,
            verifying.describe(DescribeRequest {}).await,
        ] {
            let status = described.expect_err("refused");
            is_told(status, [said, "auth.peer_token_file"]);
        }
    }
    let peer = world.of_peer();
    for (process, said) in [(&peer, "not known"), (&nothing, "no token was shown")] {
        let refused = try_generate(&coordinator, process, request("x", 4)).await;
        let mut listing = CoordinatorClient::new(channel(&coordinator, process));
        let listed = listing.list_methods(ListMethodsRequest {}).await.map(drop);
        for status in [refused.expect_err("refused"), listed.expect_err("refused")] {
            is_told(status, [said, "--token-file"]);
        }
    }
}

#[tokio::test]
async fn a_coordinator_with_the_wrong_credentials_says_which() {
    let world = World::new();
    let drafter = world.drafter(world.of_peer()).await;
    let (verifier, _) = world.verifier(world.of_peer(), |_| {}).await;
    let client = world.of_client(ANYONE);

    // Another token than the peers': nothing is generated, and the reason is told.
    let other = AuthConfig {
        peer_token_file: world.token("another-0123456789abcdef"),
        ..world.auth.clone()
    };
    let mut process = world.of_coordinator();
    process.credentials.auth = net::auth::Auth::of_coordinator(&other).expect("tokens");
    let coordinator = world
        .coordinator(&[&drafter], &[&verifier], process.clone())
        .await;
    let status = try_generate(&coordinator, &client, request("x", 4)).await;
    let status = status.expect_err("no verifier");
    assert_eq!(status.code(), Code::Unavailable);
    for part in [
        "verifier",
        "Unauthenticated",
        "not known",
        "peer_token_file",
    ] {
        assert!(status.message().contains(part), "{}", status.message());
    }

    // A certificate of a CA that the peers do not know.
    let stranger = Authority::new("other");
    let (cert_file, key_file) = stranger.issue(world.folder.path(), "stranger", &["localhost"]);
    process.credentials.tls = net::tls::Tls::load(&net::tls::TlsConfig {
        cert_file,
        key_file,
        mode: net::tls::TlsMode::Off,
        ..world.tls.clone()
    })
    .expect("certificates");
    process.credentials.auth = world.of_coordinator().credentials.auth;
    // It speaks no TLS itself, so its clients need none.
    let coordinator = world.coordinator(&[], &[&verifier], process).await;
    let config = net::channel::ChannelConfig::default();
    let channel =
        net::channel::connect(&coordinator.url(), &config, &client.credentials).expect("a URL");
    let mut client = CoordinatorClient::new(channel);
    let refused = client.generate(request("x", 4)).await;
    let said = describe(&refused.expect_err("no verifier"));
    assert!(said.contains("does not know the CA of this side"), "{said}");
}

#[tokio::test]
async fn a_drafter_that_refuses_is_a_drafter_lost() {
    let world = World::new();
    let mut changed = World::new();
    changed.tls = world.tls.clone();
    changed.auth.peer_token_file = write(changed.folder.path(), "peers", "old-0123456789abcdef");
    let drafter = changed.drafter(changed.of_peer()).await;
    let (verifier, _) = world.verifier(world.of_peer(), |_| {}).await;
    let process = world.of_coordinator();
    let coordinator = world.coordinator(&[&drafter], &[&verifier], process).await;
    let client = world.of_client(ANYONE);
    let answer = try_generate(&coordinator, &client, request("Once upon a time", 12)).await;
    let finished = answer.expect("by the target alone").finished;
    assert_eq!(finished.effective_method, "target-only");
    let reason = &finished.speculation.expect("statistics").fallbacks[0].reason;
    assert!(
        reason.contains("Unauthenticated") && reason.contains("not known"),
        "{reason}"
    );
}
