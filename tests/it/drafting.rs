//! Every way of drafting over the three services.

mod exactness;
mod features;
mod identity;
mod logprobs;
mod losses;
mod refusals;
mod rejection;
mod settings;
mod stopping;

use speculation::methods::SettingValue;
use wire::v1::GenerateRequest;

use crate::client::With;
use crate::cluster::{Service, config, coordinator, draft, target, verifier};
use crate::drafter::{drafter, max_gram_alone};

/// What is varied here.
trait Choosing {
    fn by(self, who: &str) -> Self;
    fn policy(self, policy: impl Into<SettingValue>) -> Self;
    fn tree(self, shape: impl Into<SettingValue>) -> Self;
}

impl Choosing for GenerateRequest {
    fn by(self, who: &str) -> Self {
        self.with("drafting", who)
    }

    fn policy(self, policy: impl Into<SettingValue>) -> Self {
        self.with("draft_len", policy)
    }

    fn tree(self, shape: impl Into<SettingValue>) -> Self {
        self.with("tree", shape)
    }
}

/// A learned stop, which may leave blocks empty.
fn learned(threshold: f64) -> String {
    format!("specdec++:{threshold}:0")
}

/// Every way of drafting that needs no acceptance head, by name.
fn every_way(requested: &GenerateRequest) -> Vec<(&'static str, GenerateRequest)> {
    let requested = || requested.clone();
    vec![
        ("max-gram", requested().by("max-gram").draft_len(6)),
        ("cascade", requested().by("cascade")),
        ("short cascade", requested().by("cascade").draft_len(3)),
        ("confidence", requested().policy("confidence:0.4:0")),
        (
            "entropy",
            requested().policy("entropy:1.5:0").with("draft_cap", 7),
        ),
        ("goodput", requested().policy("auto")),
        (
            "max-gram goodput",
            requested().by("max-gram").policy("auto"),
        ),
        (
            "sure max-gram",
            requested().by("max-gram").policy("confidence:0.3:0"),
        ),
        (
            "max-gram as long as it survives",
            requested().by("max-gram").policy(learned(0.8)),
        ),
        (
            "max-gram comb",
            requested().by("max-gram").tree("comb:4").draft_len(6),
        ),
        (
            "sure max-gram alternates",
            requested()
                .by("max-gram")
                .tree("alternates:2")
                .policy(learned(0.9)),
        ),
        ("comb", requested().tree("comb:8")),
        ("deep comb", requested().tree("comb:3").draft_len(12)),
        ("alternates", requested().tree("alternates:2")),
        ("cascade comb", requested().by("cascade").tree("comb:6")),
        (
            "cascade alternates",
            requested().by("cascade").tree("alternates:2").draft_len(5),
        ),
        (
            "unsure alternates",
            requested().tree("alternates:1").policy("confidence:0.3:0"),
        ),
        ("goodput comb", requested().tree("comb:4").policy("auto")),
    ]
}

/// A coordinator for the target of the embedded pair and `drafters`. What serves it lives as long.
struct Serving {
    coordinator: Service,
    _verifier: Service,
}

async fn serving(drafters: &[&Service]) -> Serving {
    let (verifier, _) = verifier(target()).await;
    let drafters: Vec<_> = drafters.iter().map(|drafter| drafter.url()).collect();
    Serving {
        coordinator: coordinator(config(&drafters, &[verifier.url()])).await,
        _verifier: verifier,
    }
}

/// The embedded draft model alone: no table, no cascade, no head.
async fn plain_drafter() -> Service {
    let mut model = draft();
    model.heads.clear();
    drafter(vec![model], |config| {
        "none".clone_into(&mut config.bigram);
    })
    .await
}
