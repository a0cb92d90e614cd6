//! What a drafter cannot do is refused by name.

use tonic::Code;
use wire::v1::draft_length::Policy;
use wire::v1::target_distribution::Kind;
use wire::v1::tree_shape::Shape;
use wire::v1::{DraftRound, Drafting, Open, ProposalForm, TargetDistribution, Verification};

use super::{Rounds, asked, draft, drafter, max_gram_alone, policy, smaller, three, tree};
use crate::cluster::Service;
use crate::protocol::open;

/// Asks in a session of its own; the message that refuses.
async fn refusal(drafter: &Service, opening: Open, round: DraftRound) -> String {
    let mut rounds = Rounds::open(drafter, opening).await;
    let status = rounds.try_ask(&[], round).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    status.message().to_owned()
}

fn form(verification: Verification, form: ProposalForm) -> Open {
    open(|open| {
        open.verification = verification.into();
        open.proposal_form = form.into();
        open.proposal_top = if form == ProposalForm::Sparse { 8 } else { 0 };
    })
}

fn with(drafting: Drafting, change: impl FnOnce(&mut DraftRound)) -> DraftRound {
    let mut round = asked(drafting, 4);
    change(&mut round);
    round
}

#[tokio::test]
async fn what_it_does_not_hold() {
    let bare = drafter(vec![draft()], |config| {
        "none".clone_into(&mut config.bigram);
    })
    .await;
    let alone = max_gram_alone().await;
    for (drafter, drafting, part) in [
        (&bare, Drafting::MaxGram, "outrider bigram build"),
        (&bare, Drafting::Cascade, "drafter.cascade"),
        (&alone, Drafting::Model, "'max-gram' holds no draft model"),
        (&alone, Drafting::Cascade, "holds no cascade"),
    ] {
        let message = refusal(drafter, open(|_| {}), asked(drafting, 4)).await;
        assert!(
            message.starts_with("drafting: ") && message.contains(part),
            "{message}"
        );
    }
    // What is left open, the drafter's default does.
    for drafter in [&bare, &alone] {
        let mut rounds = Rounds::open(drafter, open(|_| {})).await;
        let block = rounds.ask(&[], asked(Drafting::Unspecified, 4)).await;
        assert_eq!(block.tokens().len(), 4);
    }
}

fn deferral() -> Open {
    open(|open| {
        open.target = Some(TargetDistribution {
            kind: Kind::Deferral.into(),
            rule: "chow".to_owned(),
            alpha: Some(0.5),
            ..Default::default()
        });
    })
}

#[tokio::test]
async fn who_drafts_must_tell_what_the_session_needs() {
    let drafter = three().await;
    let confidences = || open(|open| open.confidences = true);
    let bild = || open(|open| open.verification = Verification::Bild.into());
    for drafting in [Drafting::MaxGram, Drafting::Cascade] {
        for (opening, round, part) in [
            (deferral(), asked(drafting, 4), "exact target only"),
            (bild(), asked(drafting, 4), "BiLD"),
            (confidences(), asked(drafting, 4), "nothing but their laws"),
            (
                open(|_| {}),
                with(drafting, |round| round.bonus_q = true),
                "after a block",
            ),
        ] {
            let message = refusal(&drafter, opening, round).await;
            assert!(
                message.starts_with("drafting: ") && message.contains(part),
                "{message}"
            );
        }
    }
    for (drafting, verification, told, part) in [
        (
            Drafting::MaxGram,
            Verification::Token,
            ProposalForm::Sparse,
            "POINT",
        ),
        (
            Drafting::Cascade,
            Verification::BlockGreedy,
            ProposalForm::DenseF32,
            "choose block",
        ),
        (
            Drafting::Cascade,
            Verification::Token,
            ProposalForm::Point,
            "expected a sparse or dense",
        ),
    ] {
        let opening = form(verification, told);
        let message = refusal(&drafter, opening, asked(drafting, 4)).await;
        assert!(
            message.starts_with("drafting: ") && message.contains(part),
            "{message}"
        );
    }
}

/// At temperature 0 each form will do but none, which does not say that laws are one-hot.
#[tokio::test]
async fn rejection_is_told_of_laws_even_at_temperature_0() {
    let drafter = three().await;
    for (told, will_do) in [
        (ProposalForm::None, false),
        (ProposalForm::Point, true),
        (ProposalForm::Sparse, true),
    ] {
        let mut opening = form(Verification::Token, told);
        opening.sampling.get_or_insert_default().temperature = Some(0.0);
        let mut rounds = Rounds::open(&drafter, opening).await;
        let asked = rounds.try_ask(&[], asked(Drafting::Cascade, 4)).await;
        assert_eq!(asked.is_ok(), will_do, "{told:?}");
    }
}

/// A law that is known only after a lenient review cannot be cut before its token is drawn.
#[tokio::test]
async fn a_lenient_cascade_tells_whole_laws_only() {
    let models = || vec![draft(), smaller()];
    let lenient = drafter(models(), |config| config.cascade.lenience = 2.0).await;
    for told in [ProposalForm::Sparse, ProposalForm::DenseF16] {
        let opening = form(Verification::Token, told);
        let message = refusal(&lenient, opening, asked(Drafting::Cascade, 4)).await;
        assert!(message.contains("lenience 2"), "{message}");
    }
    let opening = form(Verification::Token, ProposalForm::DenseF32);
    let mut rounds = Rounds::open(&lenient, opening).await;
    rounds.ask(&[], asked(Drafting::Cascade, 4)).await;
}

#[tokio::test]
async fn stop_rules_read_a_draft_model() {
    let drafter = three().await;
    for rule in [Policy::Confidence(0.5), Policy::Entropy(1.0)] {
        for drafting in [Drafting::MaxGram, Drafting::Cascade] {
            let round = with(drafting, |round| round.draft_length = Some(policy(rule)));
            let message = refusal(&drafter, open(|_| {}), round).await;
            assert!(message.starts_with("draft_length: "), "{message}");
        }
    }
    let greedy = form(Verification::BlockGreedy, ProposalForm::Sparse);
    let round = with(Drafting::Model, |round| {
        round.draft_length = Some(policy(Policy::Confidence(0.5)));
    });
    let message = refusal(&drafter, greedy, round).await;
    assert!(
        message.starts_with("draft_length: ") && message.contains("greedy"),
        "{message}"
    );
    let round = with(Drafting::Model, |round| {
        round.draft_length = Some(policy(Policy::Goodput(true)));
    });
    let message = refusal(&drafter, open(|_| {}), round).await;
    assert!(message.starts_with("draft_length.goodput: "), "{message}");
}

#[tokio::test]
async fn trees_are_for_coupled_verification_and_within_the_limit() {
    let drafter = three().await;
    let comb = |siblings, levels| {
        let mut round = asked(Drafting::Model, levels);
        round.tree = Some(tree(Shape::Comb(siblings)));
        round
    };
    let told = |told| form(Verification::Coupled, told);
    for (opening, round, part) in [
        (
            form(Verification::Token, ProposalForm::Sparse),
            comb(2, 4),
            "coupled",
        ),
        (deferral(), comb(2, 4), "exact target"),
        (told(ProposalForm::Sparse), comb(2, 4), "NONE"),
        (
            open(|_| {}),
            comb(13, 5),
            "5 levels of 13 nodes are 65, expected at most 64",
        ),
        (open(|_| {}), comb(2, 64), "128"),
    ] {
        let message = refusal(&drafter, opening, round).await;
        assert!(
            message.starts_with("tree: ") && message.contains(part),
            "{message}"
        );
    }
    let mut bonus = comb(2, 4);
    bonus.bonus_q = true;
    let message = refusal(&drafter, open(|_| {}), bonus).await;
    assert!(message.starts_with("tree: "), "{message}");
    let mut of_max_gram = comb(2, 4);
    of_max_gram.drafting = Drafting::MaxGram.into();
    let message = refusal(&drafter, open(|_| {}), of_max_gram).await;
    assert!(
        message.starts_with("tree: ") && message.contains("max-gram"),
        "{message}"
    );
    for siblings in [1, 65] {
        let message = refusal(&drafter, open(|_| {}), comb(siblings, 1)).await;
        assert!(message.starts_with("tree.comb: "), "{message}");
    }
}
