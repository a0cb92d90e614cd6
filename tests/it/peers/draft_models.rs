//! Several targets and several draft models at one coordinator: each target is drafted for by what brings it most.

use std::collections::BTreeMap;
use std::num::NonZero;

use coordinator::{DefaultDraftLen, ModelGroup};
use model::Model;
use model::source::ServedModel;
use wire::v1::{GenerateRequest, ListModelsRequest};

use super::{MS, paced_verifier};
use crate::client::{Answer, With, generate, request};
use crate::cluster::{
    Service, client, config, coordinator, draft, drafter, random_draft, target, verifier,
};
use crate::paced::Pace;
use crate::vocabularies::of_bytes;

/// The most requests after which it must be known what each pair brings.
const MOST: u64 = 200;

/// A verifier beside whose forwards those of drafters are nothing.
async fn slow(target: ServedModel<Model>) -> Service {
    let pace = Pace::default();
    pace.slow(8 * MS);
    paced_verifier(&pace, target, |_| {}).await
}

fn asked(model: &str, seed: u64) -> GenerateRequest {
    GenerateRequest {
        model: model.to_owned(),
        ..request("Once upon a time", 40)
    }
    .ignoring_eos()
    .temperature(0.0)
    .seed(seed)
    .with("schedule", "rounds")
    .with("drafting", "model")
}

/// What each draft model brings a model, by name.
async fn gains(coordinator: &Service, model: &str) -> BTreeMap<String, f64> {
    let listed = client(coordinator).list_models(ListModelsRequest {}).await;
    let models = listed.expect("models").into_inner().models;
    let model = models.into_iter().find(|it| it.name == model);
    let gains = model.expect("the model").draft_models.into_iter();
    gains.map(|it| (it.name, it.gain)).collect()
}

fn accepted(answer: &Answer) -> u32 {
    answer.statistics().num_accepted_draft_tokens
}

#[tokio::test]
async fn each_target_gets_the_draft_model_that_brings_it_most() {
    let targets = [
        ("stories", slow(target()).await),
        ("bytes", slow(of_bytes()).await),
    ];
    let drafters = [
        drafter(draft()).await.0,
        drafter(of_bytes()).await.0,
        drafter(random_draft(|_| {})).await.0,
    ];
    let urls: Vec<_> = drafters.iter().map(Service::url).collect();
    let mut config = config(&[], &[]);
    config.draft_len = DefaultDraftLen::Auto;
    let groups = targets.iter().map(|(name, verifier)| ModelGroup {
        name: (*name).to_owned(),
        drafters: urls.clone(),
        verifiers: vec![verifier.url()],
        ..ModelGroup::default()
    });
    config.models = groups.collect();
    let coordinator = coordinator(config).await;
    for (model, best) in [("stories", "draft"), ("bytes", "bytes")] {
        let alone = generate(&coordinator, asked(model, 0).method("target-only")).await;
        let mut known = BTreeMap::new();
        for seed in 0..MOST {
            let answer = generate(&coordinator, asked(model, seed)).await;
            assert_eq!(answer.tokens, alone.tokens, "{model}");
            known = gains(&coordinator, model).await;
            if known.len() == drafters.len() {
                break;
            }
        }
        assert_eq!(known.len(), drafters.len(), "{model}: {known:?}");
        for (name, &gain) in &known {
            assert_eq!(gain > 1.1, name == best, "{model}: {known:?}");
        }
        // All but one in sixteen are drafted for by it, and the others rest.
        let mut well = 0;
        for seed in 0..16 {
            let answer = generate(&coordinator, asked(model, seed)).await;
            assert_eq!(answer.tokens, alone.tokens, "{model}");
            well += u32::from(accepted(&answer) > 8);
        }
        assert!(well >= 14, "{model}: {well} of 16");
    }
}

/// Where the output hangs on the draft model, a seed gives its tokens again: one of the models drafts, whatever others bring.
#[tokio::test]
async fn what_depends_on_the_draft_model_has_always_the_same() {
    let (verifier, _) = verifier(target()).await;
    let drafters = [
        drafter(draft()).await.0,
        drafter(random_draft(|_| {})).await.0,
    ];
    let urls: Vec<_> = drafters.iter().map(Service::url).collect();
    let mut config = config(&urls, &[verifier.url()]);
    config.draft_len = DefaultDraftLen::Fixed(NonZero::new(3).expect("not zero"));
    let coordinator = coordinator(config).await;
    let mut first = None;
    for _ in 0..12 {
        let requested = request("Once upon a time", 24).method("draft-only");
        let answer = generate(&coordinator, requested.ignoring_eos()).await;
        assert_eq!(
            *first.get_or_insert_with(|| answer.tokens.clone()),
            answer.tokens
        );
        // Another might draft where this one is lost.
        assert!(!answer.finished.reproducible);
    }
}
