//! Names, values and ranges of the drafting axes, and their listing.

use speculation::drafting::policies::{CONFIDENCE, ENTROPY, LEARNED, POLICIES};
use speculation::drafting::{DraftLen, Drafting, StopRule, TreeShape};
use speculation::methods::table::DRAFTING;
use speculation::methods::{MethodSpec, SETTINGS, Setting, SettingKind, TargetKind, names};

use super::drafting::{LENS, TREES, with};
use super::{refused, resolve};

#[test]
fn numbers_lie_in_their_ranges() {
    let below = |least| StopRule::new(&CONFIDENCE, least);
    let above = |most| StopRule::new(&ENTROPY, most);
    let learned = |threshold, least| StopRule::new(&LEARNED, threshold).with_least(least);
    let (chain, stop) = (TreeShape::Chain, DraftLen::Stop);
    let [zero, one] = [learned(0.0, 0), learned(1.0, 64)];
    let (sure, flat) = (below(1.0), above(100.0));
    for rule in [below(0.0), sure, above(0.0), flat, zero, one] {
        resolve(&with("coupled", Drafting::Model, stop(rule), chain)).expect("in range");
    }
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let probability = "a probability of 0 to 1";
    let entropy = "an entropy in nats of 0 to 100";
    let threshold = "a threshold of 0 to 1";
    for (rule, expected) in [
        (below(-0.01), probability),
        (below(1.01), probability),
        (below(nan), probability),
        (above(-0.5), entropy),
        (above(inf), entropy),
        (learned(1.5, 1), threshold),
        (learned(nan, 1), threshold),
        (learned(0.5, 65), "0 to 64"),
    ] {
        let requested = with("coupled", Drafting::Model, stop(rule), chain);
        let (field, problem) = refused(&requested, 1.0);
        assert_eq!(field, "draft_len");
        assert!(
            problem.contains(&format!("expected {expected}")),
            "{problem}"
        );
        let own = names::of_draft_len(stop(rule));
        let named = problem.starts_with(&format!("'{own}' is out of range"));
        assert!(named || rule == learned(0.5, 65), "{problem}");
    }
    for (shape, expected) in [
        (TreeShape::Comb(1), "expected 2 to 64"),
        (TreeShape::Comb(65), "expected 2 to 64"),
        (TreeShape::Alternates(0), "expected 1 to 16"),
        (TreeShape::Alternates(17), "expected 1 to 16"),
    ] {
        let requested = with("coupled", Drafting::Model, DraftLen::Fixed, shape);
        let (field, problem) = refused(&requested, 1.0);
        assert_eq!(field, "tree");
        assert!(problem.contains(expected), "{problem}");
        names::tree(&names::of_tree(shape)).expect_err("out of range");
    }
}

#[test]
fn names_and_values_of_drafting_belong_together() {
    for name in DRAFTING.forms() {
        assert_eq!(names::drafting(name).map(names::of_drafting), Ok(name));
    }
    for len in LENS {
        assert_eq!(names::draft_len(&names::of_draft_len(len)), Ok((len, None)));
    }
    // With another number of tokens at least.
    let eager = StopRule::new(&LEARNED, 0.7);
    let eager = (DraftLen::Stop(eager), None);
    assert_eq!(names::draft_len("specdec++:0.7:0"), Ok(eager));
    for len in [1, 4, 64] {
        let found = names::draft_len(&len.to_string());
        assert_eq!(found, Ok((DraftLen::Fixed, Some(len))));
    }
    let most = [TreeShape::Comb(64), TreeShape::Alternates(16)];
    for shape in TREES.into_iter().chain([TreeShape::Comb(2)]).chain(most) {
        assert_eq!(names::tree(&names::of_tree(shape)), Ok(shape));
    }
    let refused = |field, texts: &str, expected: &str| {
        for text in texts.split(' ') {
            let error = match field {
                "tree" => names::tree(text).expect_err(text),
                _ => names::draft_len(text).expect_err(text),
            };
            assert_eq!(error.field, field);
            assert!(error.problem.contains(expected), "{error}");
        }
    };
    // The first of them is empty.
    let unknown = " x four -1 +4 4.0 confidence confidence: confidence:x auto:3 entropy:x";
    refused(
        "draft_len",
        unknown,
        "expected one of auto, K, confidence:MIN",
    );
    let beyond = "0 65 99999999999 confidence:1.5 entropy:-1 specdec++:2";
    refused("draft_len", beyond, "is out of range, expected");
    let unknown = " comb comb: comb:x comb:-1 alternates:2.5 chain:1";
    refused("tree", unknown, "expected one of chain, comb:N");
    for name in ["max-gram", "ngram", "lookup", "prompt-lookup"] {
        assert_eq!(names::drafting(name), Ok(Drafting::MaxGram));
    }
    let error = names::drafting("eagle").expect_err("unknown");
    let reported = "drafting: 'eagle' is unknown, expected one of model, max-gram, cascade";
    assert_eq!(error.to_string(), reported);
}

/// Whoever reads the listing can ask for what stands in it, and finds the fields of the reports.
#[test]
fn every_axis_is_listed_with_values_that_can_be_asked_for() {
    let is_axis = |setting: &&&Setting| matches!(setting.kind, SettingKind::Axis { .. });
    let listing: Vec<_> = SETTINGS.iter().filter(is_axis).collect();
    let set = MethodSpec::parse(
        "coupled:drafting=cascade:cascade_k=2+4/0+4:cascade_lenience=2:cascade_max_gram_tokens=4",
    );
    let choice = resolve(&set.expect("settings")).expect("fits");
    let mut listed: Vec<_> = listing.iter().map(|axis| axis.name).collect();
    let reported = choice.effective_axes().into_iter();
    let reported = reported.chain(choice.effective_cascade());
    let mut reported: Vec<_> = reported.map(|(axis, _)| axis).collect();
    listed.sort_unstable();
    reported.sort_unstable();
    assert_eq!(listed, reported);
    for axis in listing {
        let SettingKind::Axis { default, .. } = axis.kind else {
            panic!("{}", axis.name);
        };
        assert!(!axis.help.is_empty() && !default.is_empty() && !axis.values().is_empty());
        for value in axis.values() {
            let policy = POLICIES.iter().find(|policy| policy.form == value.form);
            let form = match policy {
                Some(policy) => format!("{}:{}", policy.name, policy.range.1),
                None => value.form.replace(['N', 'K'], "2"),
            };
            let takes_a_number = form != value.form;
            assert_eq!(!value.range.is_empty(), takes_a_number, "{form}");
            let found = match axis.name {
                "plan" => names::plan(&form).map(|_| ()),
                "target" => names::target(&form).map(|_: TargetKind| ()),
                "verification" => names::verification(&form).map(|_| ()),
                "proposal" => names::proposal(&form).map(|_| ()),
                "accept_at" => names::accepts_at_coordinator(&form).map(|_| ()),
                "drafting" => names::drafting(&form).map(|_| ()),
                "draft_len" => names::draft_len(&form).map(|_| ()),
                "tree" => names::tree(&form).map(|_| ()),
                "schedule" => names::schedule(&form).map(|_| ()),
                "cascade_k" => names::cascade_k(&form).map(|_| ()),
                "cascade_lenience" => names::cascade_lenience(&form).map(|_| ()),
                "cascade_max_gram_tokens" => names::cascade_max_gram(&form).map(|_| ()),
                other => panic!("axis {other}"),
            };
            found.unwrap_or_else(|error| panic!("{}: {error}", axis.name));
        }
    }
}
