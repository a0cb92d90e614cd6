//! The axes of drafting: what goes with what, and what is told of drafts.

use speculation::drafting::{DraftLen, Drafting, StopRule, TreeShape};
use speculation::methods::{Asked, Choice, METHODS, Method, PlanKind, names};
use speculation::proposal::ProposalForm;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

use super::{of, refused, resolve};

const DRAFTINGS: [Drafting; 3] = [Drafting::Model, Drafting::MaxGram, Drafting::Cascade];
pub(super) const LENS: [DraftLen; 5] = [
    DraftLen::Fixed,
    DraftLen::Stop(StopRule::MaxBelow(0.4)),
    DraftLen::Stop(StopRule::EntropyAbove(2.0)),
    DraftLen::Stop(StopRule::Learned {
        threshold: 0.7,
        least: 1,
    }),
    DraftLen::Goodput,
];
pub(super) const TREES: [TreeShape; 3] = [
    TreeShape::Chain,
    TreeShape::Comb(8),
    TreeShape::Alternates(2),
];
const WHOLE: ProposalForm = ProposalForm::Dense { half: false };
const SPARSE: ProposalForm = ProposalForm::Sparse { top: 32 };

pub(super) fn with(method: &str, drafting: Drafting, len: DraftLen, tree: TreeShape) -> Asked<'_> {
    Asked {
        drafting: Some(drafting),
        draft_len: Some(len),
        tree: Some(tree),
        ..of(method)
    }
}

/// Whether the four go together, as the papers say.
fn fit(
    method: &Method,
    drafting: Drafting,
    len: DraftLen,
    tree: TreeShape,
    at_coordinator: bool,
) -> bool {
    let is_chain = tree == TreeShape::Chain;
    let stops = matches!(len, DraftLen::Stop(_));
    if method.plan != PlanKind::Speculative {
        return drafting == Drafting::Model && len == DraftLen::Fixed && is_chain;
    }
    let exact = method.target == TargetDistribution::Exact;
    let greedy = method.verification == Verification::BlockGreedy;
    let coupled = method.verification == Verification::Coupled;
    let has_laws = drafting != Drafting::MaxGram;
    (drafting == Drafting::Model || exact && !stops)
        && (!greedy || drafting != Drafting::Cascade && !stops)
        && (is_chain || exact && coupled && has_laws && !at_coordinator)
}

#[test]
fn what_does_not_go_together_is_refused_by_the_name_of_what_was_asked() {
    let (mut accepted, mut turned_down) = (0, 0);
    for method in METHODS {
        for drafting in DRAFTINGS {
            for len in LENS {
                for tree in TREES {
                    for accept_at_coordinator in [false, true] {
                        let asked = Asked {
                            accept_at_coordinator,
                            ..with(method.name, drafting, len, tree)
                        };
                        if fit(method, drafting, len, tree, accept_at_coordinator) {
                            let choice = resolve(&asked)
                                .unwrap_or_else(|error| panic!("{asked:?}: {error}"));
                            assert_eq!(
                                (choice.drafting, choice.draft_len(), choice.tree),
                                (drafting, len, tree)
                            );
                            accepted += 1;
                            continue;
                        }
                        let (field, problem) = refused(&asked, 1.0);
                        let own = match field.as_str() {
                            "drafting" => names::of_drafting(drafting).to_owned(),
                            "draft_len" => names::of_draft_len(len),
                            "tree" => names::of_tree(tree),
                            other => panic!("{asked:?} is refused for {other}"),
                        };
                        assert!(problem.starts_with(&format!("'{own}' ")), "{problem}");
                        let says_what_to_do = ["choose", "expected"];
                        assert!(
                            says_what_to_do.iter().any(|word| problem.contains(word)),
                            "{problem}"
                        );
                        assert!(
                            !["model", "fixed", "chain"].contains(&own.as_str()),
                            "{problem}"
                        );
                        turned_down += 1;
                    }
                }
            }
        }
    }
    assert_eq!(accepted + turned_down, METHODS.len() * 90);
    assert!(accepted > 100, "{accepted}");
}

/// A plan that ends drafts by a rule of its own keeps it; a policy asked for is the drafter's rule.
#[test]
fn the_drafter_is_told_the_rule_asked_for() {
    for method in METHODS {
        let preset = resolve(&of(method.name)).expect(method.name);
        let fixed = with(
            method.name,
            Drafting::Model,
            DraftLen::Fixed,
            TreeShape::Chain,
        );
        let fixed = resolve(&fixed).expect(method.name);
        assert_eq!(fixed.stop_rule, preset.stop_rule);
        assert_eq!(fixed.draft_len(), preset.draft_len());
    }
    for len in LENS {
        let choice =
            resolve(&with("coupled", Drafting::Model, len, TreeShape::Chain)).expect("fits");
        let rule = match len {
            DraftLen::Stop(rule) => rule,
            _ => StopRule::Never,
        };
        assert_eq!(choice.stop_rule, rule);
        assert_eq!(choice.goodput, len == DraftLen::Goodput);
        let most = if len == DraftLen::Fixed { 4 } else { 20 };
        assert_eq!(choice.default_draft_len(), most);
    }
    let never = with(
        "coupled",
        Drafting::Model,
        DraftLen::Stop(StopRule::Never),
        TreeShape::Chain,
    );
    assert_eq!(resolve(&never).expect("fits").draft_len(), DraftLen::Fixed);
    let cascade = with(
        "coupled",
        Drafting::Cascade,
        DraftLen::Fixed,
        TreeShape::Chain,
    );
    assert_eq!(resolve(&cascade).expect("fits").default_draft_len(), 20);
}

#[test]
fn what_is_drafted_without_a_model_is_told_as_a_point() {
    for temperature in [0.0, 1.0] {
        for (method, sampled) in [
            ("coupled", ProposalForm::None),
            ("rejection", SPARSE),
            ("block", SPARSE),
        ] {
            let choice = |drafting| {
                let asked = with(method, drafting, DraftLen::Fixed, TreeShape::Chain);
                Choice::resolve(&asked, temperature, false).expect("fits")
            };
            let coupled = method == "coupled";
            let point = if coupled {
                ProposalForm::None
            } else {
                ProposalForm::Point
            };
            let max_gram = choice(Drafting::MaxGram);
            assert_eq!(max_gram.proposal, point);
            assert!(
                !max_gram.needs_draft_law()
                    && !max_gram.sends_emission_law()
                    && !max_gram.bonus_q()
            );
            let cascade = choice(Drafting::Cascade);
            let draws = temperature > 0.0;
            assert_eq!(
                cascade.proposal,
                if draws { sampled } else { point },
                "{method}"
            );
            assert_eq!(cascade.sends_emission_law(), draws && !coupled);
            assert!(!choice(Drafting::Model).sends_emission_law());
            // How a seed's tokens come about does not depend on who proposes.
            assert_eq!(cascade.is_reproducible(), coupled);
            assert!(cascade.is_lossless());
        }
    }
    let greedy = with(
        "block-greedy",
        Drafting::MaxGram,
        DraftLen::Goodput,
        TreeShape::Chain,
    );
    assert_eq!(
        resolve(&greedy).expect("fits").proposal,
        ProposalForm::Point
    );
}

fn proposed(
    method: &str,
    drafting: Drafting,
    tree: TreeShape,
    proposal: ProposalForm,
) -> Asked<'_> {
    Asked {
        proposal: Some(proposal),
        ..with(method, drafting, DraftLen::Fixed, tree)
    }
}

#[test]
fn a_proposal_that_the_drafts_do_not_have_is_refused() {
    let chain = TreeShape::Chain;
    for (method, drafting, tree, proposal, temperature, expected) in [
        (
            "rejection",
            Drafting::MaxGram,
            chain,
            SPARSE,
            1.0,
            "expected point",
        ),
        (
            "rejection",
            Drafting::MaxGram,
            chain,
            WHOLE,
            0.0,
            "expected point",
        ),
        (
            "rejection",
            Drafting::MaxGram,
            chain,
            ProposalForm::None,
            1.0,
            "expected point",
        ),
        (
            "coupled",
            Drafting::MaxGram,
            chain,
            SPARSE,
            1.0,
            "expected none",
        ),
        (
            "coupled",
            Drafting::Cascade,
            chain,
            SPARSE,
            1.0,
            "expected none",
        ),
        (
            "block",
            Drafting::Cascade,
            chain,
            WHOLE,
            0.0,
            "expected point",
        ),
        (
            "block",
            Drafting::Cascade,
            chain,
            ProposalForm::Point,
            1.0,
            "expected sparse:K or dense",
        ),
        (
            "block",
            Drafting::Cascade,
            chain,
            ProposalForm::None,
            1.0,
            "expected sparse:K or dense",
        ),
        (
            "coupled",
            Drafting::Model,
            TreeShape::Comb(8),
            SPARSE,
            1.0,
            "expected none",
        ),
        (
            "coupled",
            Drafting::Model,
            TreeShape::Comb(8),
            ProposalForm::Point,
            0.0,
            "expected none",
        ),
    ] {
        let (field, problem) = refused(&proposed(method, drafting, tree, proposal), temperature);
        assert_eq!(field, "proposal");
        assert!(
            problem.contains(expected),
            "{method} {drafting:?}: {problem}"
        );
    }
}

#[test]
fn what_to_ask_for_instead_of_a_law_is_said() {
    for (method, drafting, temperature, parts) in [
        (
            "rejection",
            Drafting::Cascade,
            0.0,
            [
                "drafting 'cascade' has none to tell at temperature 0",
                "ask for 'point'",
            ],
        ),
        (
            "coupled",
            Drafting::Cascade,
            1.0,
            ["drafting 'cascade' has none to tell,", "ask for 'none'"],
        ),
        (
            "rejection",
            Drafting::MaxGram,
            1.0,
            ["drafting 'max-gram' has none to tell,", "ask for 'point'"],
        ),
    ] {
        let asked = proposed(method, drafting, TreeShape::Chain, WHOLE);
        let (field, problem) = refused(&asked, temperature);
        assert_eq!(field, "proposal");
        assert!(parts.iter().all(|part| problem.contains(part)), "{problem}");
    }
}

#[test]
fn a_proposal_that_they_have_is_taken() {
    for (method, drafting, proposal, temperature) in [
        ("rejection", Drafting::MaxGram, ProposalForm::Point, 1.0),
        ("coupled", Drafting::MaxGram, ProposalForm::Point, 1.0),
        ("block", Drafting::Cascade, SPARSE, 1.0),
        ("block", Drafting::Cascade, ProposalForm::Point, 0.0),
    ] {
        let choice = Choice::resolve(
            &proposed(method, drafting, TreeShape::Chain, proposal),
            temperature,
            false,
        );
        assert_eq!(choice.expect("fits").proposal, proposal);
    }
}
