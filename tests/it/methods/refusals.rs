//! Axes and parameters that are unknown, out of range, or do not go together: refused by name.

use coordinator::{Coordinator, CoordinatorConfig};
use ops::process::Process;
use speculation::methods::{METHODS, SettingValue};
use tonic::Code;
use wire::v1::{GenerateRequest, ListMethodsRequest};

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{Cluster, client, config, coordinator, draft, pair, target, verifier};
use crate::errors::{case, each_refused};

fn base() -> GenerateRequest {
    request("Once upon a time", 8)
}

/// That each value is held to its range, and axes to one another, is tested in `speculation` and `wire`.
#[tokio::test]
async fn each_bad_choice_is_named() {
    let cluster = Cluster::start(draft()).await;
    let with = |expected, method: &str, name: &str, value: SettingValue| {
        case(expected, |requested| {
            method.clone_into(&mut requested.method);
            requested.set(name, value);
        })
    };
    let cases = vec![
        with(
            "settings.alpha | NaN",
            "spec-cascade",
            "alpha",
            f64::NAN.into(),
        ),
        with("settings.alpha | coupled", "coupled", "alpha", 0.5.into()),
        with("settings.beta | 'most'", "lossy", "beta", "most".into()),
        with("settings.window | 0", "bild", "window", 0.into()),
        with("settings.window | 2.5", "bild", "window", 2.5.into()),
        with(
            "settings.mean | 'yes'",
            "sequence-cascade",
            "mean",
            "yes".into(),
        ),
        with(
            "settings.verification | 'guess'",
            "",
            "verification",
            "guess".into(),
        ),
        with(
            "settings.proposal | none",
            "block",
            "proposal",
            "none".into(),
        ),
        with("settings.target | 'chaw'", "", "target", "chaw".into()),
        with(
            "settings.alhpa | is no setting",
            "lossy",
            "alhpa",
            0.5.into(),
        ),
        case("report_distributions | accept_at", |requested| {
            requested.report_distributions = true;
        }),
    ];
    each_refused(&cluster.coordinator, cases).await;
}

/// A deployment may allow only methods whose tokens are exact samples of the target model.
#[tokio::test]
async fn only_lossless_methods_are_served_where_the_operator_says_so() {
    let (drafter, verifier) = pair().await;
    let config = CoordinatorConfig {
        lossless_only: true,
        ..config(&[drafter.url()], &[verifier.url()])
    };
    let coordinator = coordinator(config).await;
    let mut client = client(&coordinator);
    let listed = client.list_methods(ListMethodsRequest {}).await;
    let listed = listed.expect("a list").into_inner().methods;
    for (method, listed) in METHODS.iter().zip(listed) {
        let requested = try_generate(&coordinator, base().method(method.name)).await;
        assert_eq!(requested.is_ok(), method.is_lossless(), "{}", method.name);
        assert_eq!(listed.allowed, method.is_lossless(), "{}", method.name);
        if let Err(status) = requested {
            assert_eq!(status.code(), Code::InvalidArgument);
            let said = status.message();
            assert!(said.starts_with("method: ") && said.contains("lossless"));
        }
    }
    let (_, cascade) = case("lossy", |requested| requested.set("target", "opt"));
    let status = try_generate(&coordinator, cascade)
        .await
        .expect_err("lossy");
    assert!(
        status.message().contains("as it is asked for"),
        "{status:?}"
    );
}

/// The operator's method is the default of requests, and the operator's length bounds them.
#[tokio::test]
async fn method_and_length_are_the_operators_where_a_request_says_nothing() {
    let (drafter, verifier) = pair().await;
    let config = CoordinatorConfig {
        method: "block".to_owned(),
        max_output_tokens: 5,
        ..config(&[drafter.url()], &[verifier.url()])
    };
    let wrong = |change: fn(&mut CoordinatorConfig)| {
        let mut config = config.clone();
        change(&mut config);
        let refused = Coordinator::new(config, Process::default());
        refused.err().expect("refused").to_string()
    };
    let refused = wrong(|config| config.method = "blok".to_owned());
    assert!(
        refused.contains("method") && refused.contains("block-greedy"),
        "{refused}"
    );
    let refused =
        wrong(|config| (config.method, config.lossless_only) = ("lossy".to_owned(), true));
    assert!(refused.contains("lossless_only"), "{refused}");
    let coordinator = coordinator(config).await;
    let mut silent = base();
    (silent.method, silent.max_tokens) = (String::new(), None);
    let answer = generate(&coordinator, silent.clone().ignoring_eos()).await;
    assert_eq!(
        (&answer.started.method[..], answer.tokens.len()),
        ("block", 5)
    );
    let answer = generate(&coordinator, silent.clone().method("coupled")).await;
    assert_eq!(answer.started.method, "coupled");
    silent.max_tokens = Some(6);
    let refused = try_generate(&coordinator, silent)
        .await
        .expect_err("too long");
    assert!(
        refused.message().starts_with("max_tokens: 6"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_cascade_needs_a_drafter() {
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    for method in METHODS {
        let requested = try_generate(&coordinator, base().method(method.name)).await;
        assert_eq!(requested.is_ok(), method.is_lossless(), "{}", method.name);
    }
}
