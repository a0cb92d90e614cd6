//! Verifiers of one model that are not alike: of other numerics, or of other weights.

use std::time::Duration;

use model::source::{ServedModel, serve};
use model::{Model, WeightFormat, embedded};
use wire::v1::{ChatMessage, GenerateRequest};

use crate::client::{With, generate, request, with_fault};
use crate::cluster::{Service, config, coordinator, draft, drafter, eventually, target, verifier};
use crate::relay::Relay;

/// A built-in model in single precision.
fn in_single_precision(role: &str) -> ServedModel<Model> {
    let checkpoint = embedded::model(role).expect("embedded");
    serve(&checkpoint, WeightFormat::F32, role.to_owned(), role).expect("a model")
}

async fn warns(coordinator: &Service, parts: &[&str]) {
    let said = || coordinator.process.warnings.all().join("\n");
    let holds = || parts.iter().all(|part| said().contains(part));
    eventually(&format!("a warning of {parts:?}"), holds).await;
}

#[tokio::test]
async fn where_verifiers_compute_other_bits_no_answer_is_reproducible() {
    let (drafter, _) = drafter(draft()).await;
    let (first, _) = verifier(target()).await;
    let (other, _) = verifier(in_single_precision("target")).await;
    let alone = coordinator(config(&[drafter.url()], &[first.url()])).await;
    let answer = generate(&alone, request("Once upon a time", 8)).await;
    assert!(answer.started.reproducible && answer.finished.reproducible);

    let both = coordinator(config(&[drafter.url()], &[first.url(), other.url()])).await;
    let (first, other) = (first.address.to_string(), other.address.to_string());
    warns(&both, &["verifiers differ", &first, &other, "f32"]).await;
    for seed in 0..4 {
        let answer = generate(&both, request("Once upon a time", 8).seed(seed)).await;
        assert!(!answer.started.reproducible && !answer.finished.reproducible);
        assert!(answer.finished.exact, "each stayed where it was");
    }
}

#[tokio::test]
async fn where_drafters_compute_other_bits_no_output_that_depends_on_them_is_reproducible() {
    let (first, _) = drafter(draft()).await;
    let (other, _) = drafter(in_single_precision("draft")).await;
    let (verifier, _) = verifier(target()).await;
    let alone = coordinator(config(&[first.url()], &[verifier.url()])).await;
    let both = coordinator(config(&[first.url(), other.url()], &[verifier.url()])).await;
    let reproducible = async |coordinator: &Service, method: &str| {
        let requested = request("Once upon a time", 8).method(method);
        generate(coordinator, requested).await.finished.reproducible
    };
    assert!(reproducible(&alone, "draft-only").await);
    assert!(!reproducible(&both, "draft-only").await);
    assert!(reproducible(&both, "coupled").await);
}

#[tokio::test]
async fn a_verifier_of_other_weights_is_not_used() {
    let (drafter, _) = drafter(draft()).await;
    let (first, _) = verifier(target()).await;
    let (second, _) = verifier(target()).await;
    let (small, _) = verifier(draft()).await;
    let alone = coordinator(config(&[drafter.url()], &[first.url()])).await;
    let urls = [small.url(), first.url(), second.url()];
    let all = coordinator(config(&[drafter.url()], &urls)).await;
    let address = small.address.to_string();
    warns(&all, &[&address, "is not used", "'draft'", "'target'"]).await;
    let labels = [
        ("model", "default"),
        ("role", "verifier"),
        ("state", "misfit"),
    ];
    all.shows("a misfit", |scrape| {
        scrape.value("outrider_peers", &labels) == 1.0
    })
    .await;
    for seed in 0..24 {
        let asked = || request("Once upon a time", 8).seed(seed);
        let [expected, found] = [
            generate(&alone, asked()).await,
            generate(&all, asked()).await,
        ];
        assert_eq!(found.tokens, expected.tokens, "seed {seed}");
        assert!(found.finished.exact && found.finished.reproducible);
    }

    let mut mixed = config(&[drafter.url()], &urls);
    mixed.models[0].mixed_weights = true;
    let mixed = coordinator(mixed).await;
    warns(&mixed, &["verifiers differ", &address]).await;
    let answer = generate(&mixed, request("Once upon a time", 8)).await;
    assert!(!answer.finished.reproducible);
}

/// Other weights are refused only beside those that are used: an upgrade of the one verifier needs nobody's consent.
#[tokio::test]
async fn a_verifier_that_is_started_anew_with_other_weights_is_used() {
    let (drafter, _) = drafter(draft()).await;
    let (old, _) = verifier(draft()).await;
    let relay = Relay::start(old.address).await;
    let coordinator = coordinator(config(&[drafter.url()], &[relay.url()])).await;
    let asked = || request("Once upon a time", 8).method("target-only");
    let before = generate(&coordinator, asked()).await;
    let (new, _) = verifier(target()).await;
    relay.lead_to(Some(new.address));
    relay.cut();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let after = generate(&coordinator, asked()).await;
    assert_ne!(before.tokens, after.tokens);
    assert!(after.finished.exact && after.finished.reproducible);
    assert_eq!(coordinator.process.warnings.all(), [""; 0]);
}

/// A verifier that is started anew in the middle of an answer, with another number format.
#[tokio::test]
async fn an_answer_whose_verifier_becomes_another_is_neither_exact_nor_reproducible() {
    let (drafter, _) = drafter(draft()).await;
    let (first, _) = verifier(target()).await;
    let (other, _) = verifier(in_single_precision("target")).await;
    for becomes_another in [false, true] {
        let relay = Relay::start(first.address).await;
        let coordinator = coordinator(config(&[drafter.url()], &[relay.url()])).await;
        let requested = request("Once upon a time", 300).ignoring_eos();
        let restart = || {
            if becomes_another {
                relay.lead_to(Some(other.address));
            }
            relay.cut();
        };
        let answer = with_fault(&coordinator, requested, 20, restart).await;
        assert!(answer.started.reproducible);
        assert_eq!(answer.finished.exact, !becomes_another);
        assert_eq!(answer.finished.reproducible, !becomes_another);
    }
}

/// A verifier that is started anew with another chat template.
#[tokio::test]
async fn the_chat_template_is_that_of_the_verifier_that_is_there() {
    let with_template = |template: &str| {
        let mut target = target();
        target.text.chat_template = Some(template.to_owned());
        target
    };
    let (plain, _) = verifier(with_template("{{ messages[0].content }}")).await;
    let (wordy, _) = verifier(with_template("Once upon a time {{ messages[0].content }}")).await;
    let relay = Relay::start(plain.address).await;
    let coordinator = coordinator(config(&[], &[relay.url()])).await;
    let prompt_tokens = async || {
        let message = ChatMessage {
            role: "user".to_owned(),
            content: "there was a dog".to_owned(),
            ..Default::default()
        };
        let asked = GenerateRequest {
            prompt: None,
            messages: vec![message],
            ..request("", 4)
        };
        generate(&coordinator, asked).await.started.prompt_tokens
    };
    let before = prompt_tokens().await;
    relay.lead_to(Some(wordy.address));
    relay.cut();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(prompt_tokens().await > before);
}
