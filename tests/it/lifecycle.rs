//! Health, reflection, and an engine that panics.

use std::time::{Duration, Instant};

use ops::process::Process;
use speculation::ports::{LanguageModel, ModelShape, Rows, Segment};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use verifier::VerifierConfig;
use wire::v1::generate_request::Prompt;
use wire::v1::{FinishReason, GenerateRequest, TokenIds};

use crate::client::{With, begin, collect, generate, request, try_generate};
use crate::cluster::{
    Cluster, PATIENCE, Service, config, coordinator, draft, target, verifier, verifier_in,
};
use crate::paced::with_model;
use crate::relay::Relay;

async fn health(service: &Service, name: &str) -> ServingStatus {
    let request = HealthCheckRequest {
        service: name.to_owned(),
    };
    let answer = HealthClient::new(service.channel()).check(request).await;
    answer.expect("health").into_inner().status()
}

pub(crate) async fn is_ready(service: &Service) -> bool {
    health(service, "").await == ServingStatus::Serving
}

async fn becomes_ready(service: &Service) {
    let limit = Instant::now() + PATIENCE;
    while !is_ready(service).await {
        assert!(Instant::now() < limit, "never ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn listed(service: &Service) -> Vec<String> {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(service.channel());
    let messages = tokio_stream::iter([request]);
    let stream = client.server_reflection_info(messages).await;
    let answer = stream.expect("reflection").into_inner().message().await;
    let answer = answer.expect("an answer");
    match answer.and_then(|answer| answer.message_response) {
        Some(MessageResponse::ListServicesResponse(list)) => {
            let services = list.service.into_iter();
            services.map(|service| service.name).collect()
        }
        other => panic!("another answer: {other:?}"),
    }
}

#[tokio::test]
async fn services_are_healthy_and_listed() {
    let cluster = Cluster::start(draft()).await;
    generate(&cluster.coordinator, request("x", 2)).await;
    for (service, name) in [
        (&cluster.drafter, "outrider.v1.Drafter"),
        (&cluster.verifier, "outrider.v1.Verifier"),
        (&cluster.coordinator, "outrider.v1.Coordinator"),
    ] {
        assert!(is_ready(service).await);
        assert_eq!(health(service, name).await, ServingStatus::Serving);
        let mut names = listed(service).await;
        names.retain(|name| name.starts_with("outrider"));
        assert_eq!(names, [name]);
    }
}

#[tokio::test]
async fn a_coordinator_is_not_ready_before_its_verifier() {
    let (late, _) = verifier(target()).await;
    let relay = Relay::start(late.address).await;
    relay.lead_to(None);
    let coordinator = coordinator(config(&[], &[relay.url()])).await;
    assert!(!is_ready(&coordinator).await);
    relay.lead_to(Some(late.address));
    becomes_ready(&coordinator).await;
}

#[tokio::test]
async fn a_peer_that_is_away_is_no_reason_to_be_unready_once_it_was_there() {
    let (verifier, _) = verifier(target()).await;
    let relay = Relay::start(verifier.address).await;
    let coordinator = coordinator(config(&[], &[relay.url()])).await;
    becomes_ready(&coordinator).await;
    relay.lead_to(None);
    let answer = try_generate(&coordinator, request("x", 2)).await;
    assert_eq!(
        answer.expect("begun").finished.reason(),
        FinishReason::Error
    );
    assert!(is_ready(&coordinator).await);
    let resting = [("role", "verifier"), ("state", "resting")];
    assert_eq!(coordinator.scrape().sum("outrider_peers", &resting), 1.0);
}

#[tokio::test]
async fn one_model_without_a_verifier_keeps_no_other_from_being_served() {
    let (verifier, _) = verifier(target()).await;
    let mut config = config(&[], &["http://127.0.0.1:9".to_owned()]);
    let mut served = config.models[0].clone();
    served.name = "served".to_owned();
    served.verifiers = vec![verifier.url()];
    config.models.push(served);
    let coordinator = coordinator(config).await;
    becomes_ready(&coordinator).await;
    let mut requested = request("x", 4).ignoring_eos();
    requested.model = "served".to_owned();
    assert_eq!(generate(&coordinator, requested).await.tokens.len(), 4);
}

#[tokio::test]
async fn rounds_are_reported_after_their_tokens() {
    let cluster = Cluster::start(draft()).await;
    let mut requested = request("Once upon a time", 60).ignoring_eos();
    requested.report_rounds = true;
    let parts = begin(&cluster.coordinator, requested).await;
    let answer = collect(parts, |_| {}).await;
    let statistics = answer.statistics();
    let drafting = |round: &&wire::v1::RoundReport| round.drafted > 0;
    let drafted = answer.rounds.iter().filter(drafting);
    assert_eq!(drafted.count(), statistics.num_spec_steps as usize);
    let mut base_len = 0;
    for (index, round) in answer.rounds.iter().enumerate() {
        assert_eq!(round.round, index as u64 + 1);
        assert_eq!(round.base_len, base_len);
        // The last slot is the target's alone.
        let step = |counts: &[u32]| counts.get(index).copied().unwrap_or(0);
        assert_eq!(round.drafted, step(&statistics.per_step_drafted));
        assert_eq!(round.accepted, step(&statistics.per_step_accepted));
        assert_eq!(round.emitted, round.accepted + 1);
        assert!(round.verify_us > 0 && (round.draft_us > 0 || round.drafted == 0));
        assert!(round.wire_bytes > 0);
        base_len += round.emitted;
    }
}

/// A model that panics on one token.
struct Fragile(model::Model);

/// The token it cannot stand.
const POISON: u32 = 666;

impl LanguageModel for Fragile {
    type Cache = model::SequenceCache;
    type Error = <model::Model as LanguageModel>::Error;

    fn shape(&self) -> ModelShape {
        self.0.shape()
    }

    fn new_cache(&self) -> Self::Cache {
        self.0.new_cache()
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, Self::Cache>],
        rows: &mut Rows,
    ) -> Result<(), Self::Error> {
        let is_sound = |segment: &Segment<'_, _>| !segment.tokens.contains(&POISON);
        assert!(batch.iter().all(is_sound), "poisoned");
        self.0.forward(batch, rows)
    }
}

#[tokio::test]
async fn a_panic_in_the_engine_fails_its_request_and_ends_the_service() {
    let fragile = with_model(target(), Fragile);
    let process = Process::default();
    let (verifier, _) = verifier_in(process, fragile, VerifierConfig::default()).await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    generate(&coordinator, request("x", 4)).await;
    let prompt = Prompt::TokenIds(TokenIds {
        ids: vec![1, POISON],
    });
    let poisoned = GenerateRequest {
        prompt: Some(prompt),
        ..request("", 8)
    };
    let answer = try_generate(&coordinator, poisoned).await.expect("begun");
    let error = &answer.finished.error;
    assert!(error.contains("poisoned"), "{error}");
    drop(coordinator);
    let ended = verifier.ends(PATIENCE).await;
    assert!(ended.is_err(), "no panic outside, and a failure");
}
