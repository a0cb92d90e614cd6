//! Every method over the three services: what it promises, wherever acceptance is decided.

mod cascades;
mod combinations;
mod losses;
mod refusals;

use std::num::NonZeroU32;

use speculation::methods::{METHODS, SettingValue};
use speculation::target::{RULES, Rule, rules};
use wire::v1::{GenerateRequest, ListMethodsRequest, SamplingParams};

use crate::client::{Answer, With, generate, request};
use crate::cluster::{
    Cluster, client, config, coordinator, draft, drafter, drafter_with, target, verifier,
    verifier_with,
};
use crate::errors::each_refused;

/// What is varied here.
trait Choosing {
    fn alpha(self, alpha: f64) -> Self;
    fn rule(self, rule: &str) -> Self;
    fn sparse(self, top: u32) -> Self;
    fn proposal(self, form: &str) -> Self;
    fn at_coordinator(self) -> Self;
}

impl Choosing for GenerateRequest {
    fn alpha(self, alpha: f64) -> Self {
        self.with("alpha", alpha)
    }

    fn rule(self, rule: &str) -> Self {
        self.with("rule", rule)
    }

    fn sparse(self, top: u32) -> Self {
        self.with("proposal", format!("sparse:{top}"))
    }

    fn proposal(self, form: &str) -> Self {
        self.with("proposal", form)
    }

    fn at_coordinator(self) -> Self {
        self.with("accept_at", "coordinator")
    }
}

/// Each method, and each rule of each method that takes several.
fn every_way() -> Vec<(String, GenerateRequest)> {
    let mut ways = Vec::new();
    for method in METHODS {
        let requested = request("Question: What is 347 + 58?\nAnswer:", 32).method(method.name);
        ways.push((method.name.to_owned(), requested.clone()));
        let rules: &[Rule] = match method.name {
            "spec-cascade" | "oracle-cascade" => RULES,
            "token-cascade" => rules::for_drafters(),
            _ => &[],
        };
        for rule in rules {
            let requested = requested.clone().rule(rule.name);
            ways.push((format!("{} {}", method.name, rule.name), requested));
        }
    }
    let mut tuned = request("Once upon a time", 32).method("lossy").alpha(0.3);
    tuned.set("beta", "tuned");
    ways.push(("lossy tuned".to_owned(), tuned.clone()));
    tuned.set("verification", "coupled");
    ways.push(("lossy coupled".to_owned(), tuned.clone()));
    tuned.set("verification", "block");
    ways.push(("lossy block".to_owned(), tuned));
    let mut within = request("Once upon a time", 32).method("lossy");
    within.set("kl_budget", 0.2);
    ways.push(("lossy within a budget".to_owned(), within.clone()));
    within.set("verification", "coupled");
    ways.push(("lossy within a budget, coupled".to_owned(), within));
    let mut code = request("Question: What is 347 + 58?\nAnswer:", 32).method("bild");
    code.set("code_variant", true);
    ways.push(("bild as in the authors' code".to_owned(), code));
    let mut opt = request("Once upon a time", 32)
        .method("spec-cascade")
        .rule("opt");
    let by_tokens = opt.clone().method("spec-cascade-rejection");
    ways.push(("opt token".to_owned(), by_tokens));
    for verification in ["block", "block-greedy"] {
        opt.set("verification", verification);
        ways.push((format!("opt {verification}"), opt.clone()));
    }
    ways
}

#[tokio::test]
async fn it_makes_no_difference_where_acceptance_is_decided() {
    let cluster = Cluster::start(draft()).await;
    let samplings = [0.0, 0.7, 1.0].map(|temperature| SamplingParams {
        temperature: Some(temperature),
        ..Default::default()
    });
    // Cut distributions take other ways: on their support, with the unscaled distribution beside them.
    let cut = [
        SamplingParams {
            top_k: 20,
            frequency_penalty: 0.5,
            ..Default::default()
        },
        SamplingParams {
            temperature: Some(1.3),
            top_p: Some(0.9),
            min_p: 0.01,
            ..Default::default()
        },
    ];
    for (what, requested) in every_way() {
        for sampling in samplings.iter().chain(&cut) {
            let temperature = sampling.temperature();
            let mut requested = requested.clone().ignoring_eos();
            requested.sampling = Some(sampling.clone());
            let here = generate(&cluster.coordinator, requested.clone()).await;
            let there = generate(&cluster.coordinator, requested.clone().at_coordinator()).await;
            assert_eq!(here.tokens, there.tokens, "{what} T={temperature}");
            assert_eq!(here.origins, there.origins, "{what} T={temperature}");
            assert_eq!(here.tokens.len(), 32, "{what}");
            for answer in [&here, &there] {
                assert_eq!(answer.fallbacks(), 0, "{what} T={temperature}");
                assert!(answer.finished.exact, "{what}");
            }
            let (a, b) = (here.statistics(), there.statistics());
            assert_eq!(a.deferral_rate, b.deferral_rate, "{what} T={temperature}");
            assert_eq!(a.rejection_rate, b.rejection_rate, "{what}");
            assert_eq!(a.target_forwards, b.target_forwards, "{what}");
            assert!(a.wire_bytes > 0 && b.wire_bytes > 0);
            let method = requested.method;
            assert_eq!(here.finished.effective_method, method);
        }
    }
}

#[tokio::test]
async fn every_method_runs_on_sparse_proposals_at_both_places() {
    let cluster = Cluster::start(draft()).await;
    for (what, requested) in every_way() {
        // D(q, p) needs all of q.
        if what.ends_with(" bild") {
            continue;
        }
        let requested = requested.sparse(32).ignoring_eos();
        let here = generate(&cluster.coordinator, requested.clone()).await;
        let there = generate(&cluster.coordinator, requested.at_coordinator()).await;
        assert_eq!(here.tokens, there.tokens, "{what}");
        assert_eq!(here.fallbacks() + there.fallbacks(), 0, "{what}");
    }
}

/// q' is the small model's distribution everywhere, so half precision and f32 may differ, and each agrees
/// with itself.
#[tokio::test]
async fn dense_distributions_come_in_both_precisions() {
    let cluster = Cluster::start(draft()).await;
    for form in ["dense:f32", "dense:f16"] {
        for method in "rejection block block-greedy lossy spec-cascade".split(' ') {
            let requested = request("Once upon a time", 32)
                .method(method)
                .proposal(form);
            let here = generate(&cluster.coordinator, requested.clone()).await;
            let there = generate(&cluster.coordinator, requested.clone().at_coordinator()).await;
            assert_eq!(here.tokens, there.tokens, "{method} {form:?}");
            let sparse = generate(&cluster.coordinator, requested.sparse(32)).await;
            let bytes = |answer: &Answer| answer.statistics().wire_bytes_per_round;
            assert!(bytes(&here) > 5.0 * bytes(&sparse), "{method} {form:?}");
        }
    }
}

#[tokio::test]
async fn axes_given_explicitly_override_the_method() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 24);
    let axes = requested.clone().with("target", "opt").with("alpha", 0.2);
    let by_axes = generate(&cluster.coordinator, axes).await;
    let by_method = requested
        .clone()
        .method("spec-cascade")
        .rule("opt")
        .alpha(0.2);
    let by_method = generate(&cluster.coordinator, by_method).await;
    assert_eq!(by_axes.tokens, by_method.tokens);
    assert_eq!(by_axes.setting("target").expect("a setting"), "opt");
    let plan = requested.clone().with("plan", "target-only");
    let alone = generate(&cluster.coordinator, plan).await;
    let target_only = generate(&cluster.coordinator, requested.method("target-only")).await;
    assert_eq!(alone.tokens, target_only.tokens);
    assert_eq!(alone.statistics().num_draft_tokens, 0);
}

/// What is listed is the registry, and every default that is listed may be asked for.
#[tokio::test]
async fn every_method_is_listed_with_its_parameters() {
    let cluster = Cluster::start(draft()).await;
    let mut client = client(&cluster.coordinator);
    let listed = client.list_methods(ListMethodsRequest {}).await;
    let listed = listed.expect("a list").into_inner();
    let names: Vec<&str> = listed.methods.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, speculation::methods::names());
    assert_eq!(listed.rules.len(), RULES.len());
    for method in &listed.methods {
        let mut requested = request("Once upon a time", 4).method(&method.name);
        // No budget, unless it stands in place of alpha and beta.
        for parameter in &method.parameters {
            requested.set(&parameter.name, SettingValue::read(&parameter.default));
        }
        let answer = generate(&cluster.coordinator, requested).await;
        for parameter in &method.parameters {
            assert_eq!(
                answer.setting(&parameter.name).expect("a setting"),
                parameter.default
            );
        }
    }
}

/// Where the target looks decides what it adds, so a drafter's own limit must not show.
#[tokio::test]
async fn a_window_of_bild_does_not_depend_on_what_a_drafter_takes_at_once() {
    let (verifier, _) = verifier(target()).await;
    let mut requested = request("Once upon a time", 40)
        .method("bild")
        .ignoring_eos();
    requested.set("fallback", 0.0);
    requested.set("alpha", 3.0);
    let mut answers = Vec::new();
    for limit in [64, 3, 1] {
        let limit = NonZeroU32::new(limit).expect("not zero");
        let (drafter, _) = drafter_with(draft(), |config| config.max_draft_tokens = limit).await;
        let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
        answers.push(generate(&coordinator, requested.clone()).await);
    }
    assert!(answers[0].statistics().num_accepted_draft_tokens > 0);
    for answer in &answers[1..] {
        assert_eq!(answer.tokens, answers[0].tokens);
    }
    // A verifier takes a block whole, or the window is refused.
    let limit = NonZeroU32::new(9).expect("not zero");
    let (small, _) = verifier_with(target(), |config| config.max_draft_tokens = limit).await;
    let (drafter, _) = drafter(draft()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[small.url()])).await;
    each_refused(
        &coordinator,
        vec![("settings.window | : 10 | 9", requested)],
    )
    .await;
}

/// Axes given beside a method may make another one of it, and that is what is reported.
#[tokio::test]
async fn the_method_reported_is_the_one_that_ran() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 4);
    let with_plan = |method: &str, plan: &str| requested.clone().method(method).with("plan", plan);
    let block = requested.clone().with("verification", "block");
    for (requested, effective) in [
        (with_plan("coupled", "draft-only"), "draft-only"),
        (with_plan("coupled", "target-only"), "target-only"),
        (with_plan("lossy", "token-cascade"), "token-cascade"),
        (with_plan("bild", "speculative"), "coupled"),
        (block, "block"),
        (requested.clone().method("gumbel"), "coupled"),
    ] {
        let answer = generate(&cluster.coordinator, requested).await;
        assert_eq!(answer.finished.effective_method, effective);
    }
}

/// Each answer that brings tokens is a round, in every plan.
#[tokio::test]
async fn rounds_of_every_plan_are_reported() {
    let cluster = Cluster::start(draft()).await;
    for method in METHODS {
        let mut requested = request("Once upon a time", 12)
            .method(method.name)
            .ignoring_eos();
        requested.report_rounds = true;
        let answer = generate(&cluster.coordinator, requested).await;
        let reported: u32 = answer.rounds.iter().map(|round| round.emitted).sum();
        let bytes = answer.statistics();
        // What the target decodes alone comes without rounds, an answer that is given anew too.
        let is_anew = method.name == "sequence-cascade" && bytes.deferral_rate == Some(1.0);
        let is_alone = method.name == "target-only" || is_anew;
        assert_eq!(reported, if is_alone { 0 } else { 12 }, "{}", method.name);
        assert!(bytes.wire_bytes_per_round > 0.0, "{}", method.name);
        assert!(bytes.wire_bytes_per_round < bytes.wire_bytes as f64);
    }
}
