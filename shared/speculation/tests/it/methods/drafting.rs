//! The axes of drafting: what goes with what, and what is told of drafts.

use speculation::drafting::Drafting::{self, Cascade, MaxGram, Model};
use speculation::drafting::policies::{CONFIDENCE, ENTROPY, LEARNED, Reads};
use speculation::drafting::{DraftLen, StopRule, TreeShape};
use speculation::methods::{METHODS, Method, MethodSpec, PlanKind, names};
use speculation::proposal::ProposalForm::{self, Dense, Point, Sparse};
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

use super::{at, of, refused, resolve};

const DRAFTINGS: [Drafting; 3] = [Model, MaxGram, Cascade];
pub(super) const LENS: [DraftLen; 5] = [
    DraftLen::Fixed,
    DraftLen::Stop(StopRule::new(&CONFIDENCE, 0.4)),
    DraftLen::Stop(StopRule::new(&ENTROPY, 2.0)),
    DraftLen::Stop(StopRule::new(&LEARNED, 0.7).with_least(1)),
    DraftLen::Auto,
];
pub(super) const TREES: [TreeShape; 3] = [
    TreeShape::Chain,
    TreeShape::Comb(8),
    TreeShape::Alternates(2),
];
const CHAIN: TreeShape = TreeShape::Chain;
const COMB: TreeShape = TreeShape::Comb(8);
const WHOLE: ProposalForm = Dense { half: false };
const SPARSE: ProposalForm = Sparse { top: 32 };
const NONE: ProposalForm = ProposalForm::None;

pub(super) fn with(method: &str, drafting: Drafting, len: DraftLen, tree: TreeShape) -> MethodSpec {
    of(method)
        .with("drafting", names::of_drafting(drafting))
        .with("draft_len", names::of_draft_len(len))
        .with("tree", names::of_tree(tree))
}

/// A chain of a fixed length.
fn drafted(method: &str, drafting: Drafting) -> MethodSpec {
    with(method, drafting, DraftLen::Fixed, CHAIN)
}

/// Whether the four go together, as the papers say.
fn fit(
    method: &Method,
    drafting: Drafting,
    len: DraftLen,
    tree: TreeShape,
    at_coordinator: bool,
) -> bool {
    let is_chain = tree == CHAIN;
    let stops = matches!(len, DraftLen::Stop(_));
    if method.plan != PlanKind::Speculative {
        return drafting == Model && len == DraftLen::Fixed && is_chain;
    }
    let exact = method.target == TargetDistribution::Exact;
    let greedy = method.verification == Verification::BLOCK_GREEDY;
    let coupled = method.verification == Verification::COUPLED;
    // The siblings of a cascade of drafters have no one distribution.
    let token = method.verification == Verification::TOKEN && drafting != Cascade;
    let reads_entropy = matches!(len, DraftLen::Stop(rule) if rule.reads(Reads::Entropy));
    // A rule that looks at the block from its start cannot be asked anew along the output.
    let looks_back = drafting == Model && matches!(len, DraftLen::Stop(rule) if rule.needs_head());
    // Max-Gram knows how sure it is of a token.
    let may_stop = drafting == MaxGram && !reads_entropy;
    (drafting == Model || exact && (!stops || may_stop))
        && (!greedy || drafting != Cascade && !looks_back && !(stops && at_coordinator))
        && (is_chain || exact && (coupled || token) && !at_coordinator)
}

#[test]
fn what_does_not_go_together_is_refused_by_the_name_of_what_was_asked() {
    let (mut accepted, mut turned_down) = (0, 0);
    for method in METHODS {
        for drafting in DRAFTINGS {
            for len in LENS {
                for tree in TREES {
                    for accept_at_coordinator in [false, true] {
                        let who = if accept_at_coordinator {
                            "coordinator"
                        } else {
                            "verifier"
                        };
                        let requested = with(method.name, drafting, len, tree);
                        let requested = requested.with("accept_at", who);
                        if fit(method, drafting, len, tree, accept_at_coordinator) {
                            let choice = resolve(&requested)
                                .unwrap_or_else(|error| panic!("{requested:?}: {error}"));
                            let found = (choice.drafting, choice.draft_len(), choice.tree);
                            assert_eq!(found, (drafting, len, tree));
                            accepted += 1;
                            continue;
                        }
                        let (field, problem) = refused(&requested, 1.0);
                        let own = match field.as_str() {
                            "drafting" => names::of_drafting(drafting).to_owned(),
                            "draft_len" => names::of_draft_len(len),
                            "tree" => names::of_tree(tree),
                            other => panic!("{requested:?} is refused for {other}"),
                        };
                        assert!(problem.starts_with(&format!("'{own}' ")), "{problem}");
                        let says_what_to_do =
                            ["choose", "expected"].map(|word| problem.contains(word));
                        let is_default = ["model", "fixed", "chain"].contains(&own.as_str());
                        assert!(says_what_to_do.contains(&true) && !is_default, "{problem}");
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
        let fixed = resolve(&drafted(method.name, Model)).expect(method.name);
        assert_eq!(fixed.stop_rule, preset.stop_rule);
        let (fixed, open) = (fixed.draft_len(), preset.draft_len());
        assert!(fixed == open || (fixed, open) == (DraftLen::Fixed, DraftLen::Auto));
    }
    let lasting = |len| resolve(&with("coupled", Model, len, CHAIN)).expect("fits");
    for len in LENS {
        let choice = lasting(len);
        let rule = match len {
            DraftLen::Stop(rule) => rule,
            _ => StopRule::NEVER,
        };
        assert_eq!(choice.stop_rule, rule);
        assert_eq!(choice.auto, len == DraftLen::Auto);
    }
    let never = lasting(DraftLen::Stop(StopRule::NEVER));
    assert_eq!(never.draft_len(), DraftLen::Fixed);
    for method in METHODS {
        let preset = resolve(&of(method.name)).expect(method.name);
        let is_open = PlanKind::from(preset.plan) == PlanKind::Speculative;
        assert_eq!(
            preset.draft_len() == DraftLen::Auto,
            is_open,
            "{}",
            method.name
        );
    }
}

#[test]
fn what_is_drafted_without_a_model_is_told_as_a_point() {
    for (method, point, sampled) in [
        ("coupled", NONE, NONE),
        ("rejection", Point, SPARSE),
        ("block", Point, SPARSE),
    ] {
        for draws in [false, true] {
            let choice = |drafting| {
                let temperature = if draws { 1.0 } else { 0.0 };
                at(&drafted(method, drafting), temperature).expect("fits")
            };
            let max_gram = choice(MaxGram);
            assert_eq!(max_gram.proposal, point);
            assert!(!max_gram.needs_draft_probs() && !max_gram.bonus_q());
            let cascade = choice(Cascade);
            let coupled = method == "coupled";
            let reported = if draws { sampled } else { point };
            assert_eq!(cascade.proposal, reported, "{method}");
            assert_eq!(cascade.needs_draft_probs(), draws && !coupled);
            // How a seed's tokens come about does not depend on who proposes.
            assert_eq!(cascade.is_reproducible(), coupled);
            assert!(cascade.is_lossless());
        }
    }
    let greedy = with("block-greedy", MaxGram, DraftLen::Auto, CHAIN);
    assert_eq!(resolve(&greedy).expect("fits").proposal, Point);
}

#[test]
fn a_proposal_that_the_drafts_do_not_have_is_refused_and_another_taken() {
    const TAKEN: &str = "";
    let probs = "sparse:K or dense";
    for (method, drafting, tree, proposal, temperature, expected) in [
        ("rejection", MaxGram, CHAIN, SPARSE, 1.0, "point"),
        ("rejection", MaxGram, CHAIN, WHOLE, 0.0, "point"),
        ("rejection", MaxGram, CHAIN, NONE, 1.0, "point"),
        ("coupled", MaxGram, CHAIN, SPARSE, 1.0, "none"),
        ("coupled", Cascade, CHAIN, SPARSE, 1.0, "none"),
        ("block", Cascade, CHAIN, WHOLE, 0.0, "point"),
        ("block", Cascade, CHAIN, Point, 1.0, probs),
        ("block", Cascade, CHAIN, NONE, 1.0, probs),
        ("coupled", Model, COMB, SPARSE, 1.0, "none"),
        ("coupled", Model, COMB, Point, 0.0, "none"),
        ("rejection", Model, COMB, NONE, 1.0, probs),
        ("rejection", MaxGram, COMB, SPARSE, 1.0, "point"),
        ("rejection", MaxGram, CHAIN, Point, 1.0, TAKEN),
        ("coupled", MaxGram, CHAIN, Point, 1.0, TAKEN),
        ("block", Cascade, CHAIN, SPARSE, 1.0, TAKEN),
        ("block", Cascade, CHAIN, Point, 0.0, TAKEN),
        ("rejection", Model, COMB, SPARSE, 1.0, TAKEN),
        ("rejection", MaxGram, COMB, Point, 1.0, TAKEN),
    ] {
        let requested = with(method, drafting, DraftLen::Fixed, tree);
        let requested = requested.with("proposal", names::of_proposal(proposal));
        if expected == TAKEN {
            let choice = at(&requested, temperature);
            assert_eq!(choice.expect("fits").proposal, proposal);
            continue;
        }
        let (field, problem) = refused(&requested, temperature);
        assert_eq!(field, "proposal");
        let expected = format!("expected {expected}");
        assert!(
            problem.contains(&expected),
            "{method} {drafting:?}: {problem}"
        );
    }
}
