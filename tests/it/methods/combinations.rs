//! What the coordinator admits, its peers accept; what it refuses, it refuses by a field of the request.

use coordinator::CoordinatorConfig;
use speculation::methods::METHODS;
use tonic::Code;
use wire::v1::GenerateRequest;

use crate::client::{With, request, try_generate};
use crate::cluster::{config, coordinator, target, verifier};
use crate::drafter::three_with_heads;

/// Requests that are tried, of all that the axes make.
const TRIED: usize = 600;

/// Takes values of axes from one number.
struct Picks(usize);

impl Picks {
    fn one<T: Copy>(&mut self, values: &[T]) -> T {
        let value = values[self.0 % values.len()];
        self.0 /= values.len();
        value
    }
}

/// A request with an axis each from `number`, most of them left to the method.
fn with_axes(number: usize) -> GenerateRequest {
    let mut picks = Picks(number);
    let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
    let mut requested = request("Question: What is 12 + 30?\nAnswer:", 6).method(picks.one(&names));
    requested = requested.temperature(picks.one(&[0.0, 1.0]));
    let mut set = |name: &str, values: &[&str]| {
        let value = picks.one(values);
        if !value.is_empty() {
            requested.set(name, value);
        }
    };
    set("drafting", &["", "model", "max-gram", "cascade"]);
    let lens = ["", "", "", "confidence:0.3", "specdec++:0.5", "auto"];
    set("draft_len", &lens);
    set("tree", &["", "", "", "", "comb:2", "alternates:1"]);
    let verifications = ["", "", "", "", "coupled", "token", "block", "block-greedy"];
    set("verification", &verifications);
    let forms = [
        "",
        "",
        "",
        "",
        "",
        "none",
        "point",
        "sparse:16",
        "dense:f16",
    ];
    set("proposal", &forms);
    set("accept_at", &["", "coordinator"]);
    set("plan", &["", "", "", "speculative", "oracle-cascade"]);
    set("target", &["", "", "", "", "", "exact", "opt", "token-v2"]);
    requested.report_distributions = is_given(&requested, "accept_at") && picks.one(&[false, true]);
    requested
}

/// Whether `requested` says something of the setting `name`.
fn is_given(requested: &GenerateRequest, name: &str) -> bool {
    let settings = requested.settings.as_ref();
    settings.is_some_and(|given| given.fields.contains_key(name))
}

#[tokio::test]
async fn what_is_admitted_is_carried_out() {
    let (drafter, (verifier, _)) = (three_with_heads().await, verifier(target()).await);
    let coordinator = coordinator(CoordinatorConfig {
        allow_distribution_reports: true,
        ..config(&[drafter.url()], &[verifier.url()])
    })
    .await;
    let (mut admitted, mut refused) = (0, 0);
    for number in 0..TRIED {
        // A step without a factor in common with the number of combinations.
        let requested = with_axes(number * 1_000_003);
        match try_generate(&coordinator, requested.clone()).await {
            Ok(answer) => {
                admitted += 1;
                assert_eq!(answer.finished.error, "", "{requested:?}");
                // A peer that refuses is done without.
                assert_eq!(answer.fallbacks(), 0, "{requested:?}");
            }
            Err(status) => {
                refused += 1;
                assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
                let (field, _) = status.message().split_once(": ").expect("a field");
                let name = field.strip_prefix("settings.").unwrap_or(field);
                let is_said = is_given(&requested, name) || requested.report_distributions;
                assert!(is_said, "{requested:?}: {status:?}");
            }
        }
    }
    assert!(admitted > 50 && refused > 50, "{admitted} {refused}");
}
