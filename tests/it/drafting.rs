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

use wire::v1::draft_length::Policy;
use wire::v1::tree_shape::Shape;
use wire::v1::{DraftLength, Drafting, GenerateRequest, LearnedStop, TreeShape};

use crate::client::With;
use crate::cluster::{Service, config, coordinator, draft, target, verifier};
use crate::drafter::{drafter, max_gram_alone};

/// What is varied here.
trait Choosing {
    fn by(self, who: Drafting) -> Self;
    fn policy(self, policy: Policy) -> Self;
    fn tree(self, shape: Shape) -> Self;
}

impl Choosing for GenerateRequest {
    fn by(mut self, who: Drafting) -> Self {
        self.drafting = who.into();
        self
    }

    fn policy(mut self, policy: Policy) -> Self {
        self.draft_length = Some(DraftLength {
            policy: Some(policy),
        });
        self
    }

    fn tree(mut self, shape: Shape) -> Self {
        self.tree = Some(TreeShape { shape: Some(shape) });
        self
    }
}

fn learned(threshold: f64) -> Policy {
    Policy::Learned(LearnedStop {
        threshold,
        min_tokens: 0,
    })
}

/// Every way of drafting that needs no acceptance head, by name.
fn every_way(requested: &GenerateRequest) -> Vec<(&'static str, GenerateRequest)> {
    let requested = || requested.clone();
    vec![
        ("max-gram", requested().by(Drafting::MaxGram).draft_len(6)),
        ("cascade", requested().by(Drafting::Cascade)),
        (
            "short cascade",
            requested().by(Drafting::Cascade).draft_len(3),
        ),
        ("confidence", requested().policy(Policy::Confidence(0.4))),
        (
            "entropy",
            requested().policy(Policy::Entropy(1.5)).draft_len(7),
        ),
        ("goodput", requested().policy(Policy::Goodput(true))),
        (
            "max-gram goodput",
            requested()
                .by(Drafting::MaxGram)
                .policy(Policy::Goodput(true)),
        ),
        (
            "sure max-gram",
            requested()
                .by(Drafting::MaxGram)
                .policy(Policy::Confidence(0.3)),
        ),
        (
            "max-gram as long as it survives",
            requested().by(Drafting::MaxGram).policy(learned(0.8)),
        ),
        (
            "max-gram comb",
            requested()
                .by(Drafting::MaxGram)
                .tree(Shape::Comb(4))
                .draft_len(6),
        ),
        (
            "sure max-gram alternates",
            requested()
                .by(Drafting::MaxGram)
                .tree(Shape::Alternates(2))
                .policy(learned(0.9)),
        ),
        ("comb", requested().tree(Shape::Comb(8))),
        ("deep comb", requested().tree(Shape::Comb(3)).draft_len(12)),
        ("alternates", requested().tree(Shape::Alternates(2))),
        (
            "cascade comb",
            requested().by(Drafting::Cascade).tree(Shape::Comb(6)),
        ),
        (
            "cascade alternates",
            requested()
                .by(Drafting::Cascade)
                .tree(Shape::Alternates(2))
                .draft_len(5),
        ),
        (
            "unsure alternates",
            requested()
                .tree(Shape::Alternates(1))
                .policy(Policy::Confidence(0.3)),
        ),
        (
            "goodput comb",
            requested()
                .tree(Shape::Comb(4))
                .policy(Policy::Goodput(true)),
        ),
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
