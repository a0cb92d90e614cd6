//! Names, values and ranges of the drafting axes, and their listing.

use speculation::drafting::{DraftLen, Drafting, StopRule, TreeShape};
use speculation::methods::{TargetAsked, axes_listing, names};

use super::drafting::{LENS, TREES, with};
use super::{of, refused, resolve};

#[test]
fn numbers_lie_in_their_ranges() {
    let stop = DraftLen::Stop;
    let learned = |threshold, least| stop(StopRule::Learned { threshold, least });
    for len in [
        stop(StopRule::MaxBelow(0.0)),
        stop(StopRule::MaxBelow(1.0)),
        stop(StopRule::EntropyAbove(0.0)),
        stop(StopRule::EntropyAbove(1e9)),
        learned(0.0, 0),
        learned(1.0, 64),
    ] {
        resolve(&with("coupled", Drafting::Model, len, TreeShape::Chain)).expect("in range");
    }
    for (len, expected) in [
        (
            stop(StopRule::MaxBelow(-0.01)),
            "'confidence:-0.01' is out of range, expected a probability of 0 to 1",
        ),
        (stop(StopRule::MaxBelow(1.01)), "'confidence:1.01' is out"),
        (
            stop(StopRule::MaxBelow(f64::NAN)),
            "'confidence:NaN' is out",
        ),
        (
            stop(StopRule::EntropyAbove(-0.5)),
            "'entropy:-0.5' is out of range, expected an entropy of at least 0",
        ),
        (
            stop(StopRule::EntropyAbove(f64::INFINITY)),
            "'entropy:inf' is out",
        ),
        (
            learned(1.5, 1),
            "'specdec++:1.5' is out of range, expected a threshold of 0 to 1",
        ),
        (learned(f64::NAN, 1), "'specdec++:NaN' is out"),
        (learned(0.5, 65), "expected 0 to 64"),
    ] {
        let (field, problem) = refused(
            &with("coupled", Drafting::Model, len, TreeShape::Chain),
            1.0,
        );
        assert_eq!(field, "draft_len");
        assert!(problem.contains(expected), "{problem}");
    }
    for (shape, expected) in [
        (TreeShape::Comb(1), "expected 2 to 64"),
        (TreeShape::Comb(65), "expected 2 to 64"),
        (TreeShape::Alternates(0), "expected 1 to 16"),
        (TreeShape::Alternates(17), "expected 1 to 16"),
    ] {
        let (field, problem) = refused(
            &with("coupled", Drafting::Model, DraftLen::Fixed, shape),
            1.0,
        );
        assert_eq!(field, "tree");
        assert!(problem.contains(expected), "{problem}");
        names::tree(&names::of_tree(shape)).expect_err("out of range");
    }
}

#[test]
fn names_and_values_of_drafting_belong_together() {
    for name in names::draftings() {
        assert_eq!(names::drafting(name).map(names::of_drafting), Ok(name));
    }
    for len in LENS {
        assert_eq!(names::draft_len(&names::of_draft_len(len)), Ok((len, None)));
    }
    for len in [1, 4, 64] {
        assert_eq!(
            names::draft_len(&len.to_string()),
            Ok((DraftLen::Fixed, Some(len)))
        );
    }
    for shape in TREES.into_iter().chain([
        TreeShape::Comb(2),
        TreeShape::Comb(64),
        TreeShape::Alternates(16),
    ]) {
        assert_eq!(names::tree(&names::of_tree(shape)), Ok(shape));
    }
    for text in [
        "",
        "x",
        "four",
        "-1",
        "+4",
        "4.0",
        "confidence",
        "confidence:",
        "confidence:x",
        "goodput:3",
        "entropy:x",
    ] {
        let error = names::draft_len(text).expect_err(text);
        assert_eq!(error.field, "draft_len");
        assert!(
            error.problem.contains("expected one of K, confidence:MIN"),
            "{error}"
        );
    }
    for text in [
        "0",
        "65",
        "99999999999",
        "confidence:1.5",
        "entropy:-1",
        "specdec++:2",
    ] {
        let error = names::draft_len(text).expect_err(text);
        assert!(
            error.problem.contains("is out of range, expected"),
            "{error}"
        );
    }
    for text in [
        "",
        "comb",
        "comb:",
        "comb:x",
        "comb:-1",
        "alternates:2.5",
        "chain:1",
    ] {
        let error = names::tree(text).expect_err(text);
        assert_eq!(error.field, "tree");
        assert!(
            error.problem.contains("expected one of chain, comb:N"),
            "{error}"
        );
    }
    let error = names::drafting("ngram").expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "drafting: 'ngram' is unknown, expected one of model, max-gram, cascade"
    );
}

/// Whoever reads the listing can ask for what stands in it, and finds the fields of the reports.
#[test]
fn every_axis_is_listed_with_values_that_can_be_asked_for() {
    let listing = axes_listing();
    let reported = resolve(&of("coupled")).expect("fits").effective_axes();
    let mut listed: Vec<_> = listing.iter().map(|axis| axis.name).collect();
    let mut reported = reported.map(|(axis, _)| axis);
    listed.sort_unstable();
    reported.sort_unstable();
    assert_eq!(listed, reported);
    for axis in listing {
        assert!(!axis.help.is_empty() && !axis.default.is_empty() && !axis.values.is_empty());
        for value in axis.values {
            let form = match value.form {
                "K" => "4".to_owned(),
                "confidence:MIN" | "specdec++:H" => {
                    value.form.replace("MIN", "0.5").replace('H', "0.5")
                }
                other => other.replace("MAX", "2").replace(['N', 'K'], "2"),
            };
            let takes_a_number = form != value.form;
            assert_eq!(!value.range.is_empty(), takes_a_number, "{form}");
            let found = match axis.name {
                "plan" => names::plan(&form).map(|_| ()),
                "target" => names::target(&form).map(|_: TargetAsked| ()),
                "verification" => names::verification(&form).map(|_| ()),
                "proposal" => names::proposal(&form).map(|_| ()),
                "accept_at" => names::accepts_at_coordinator(&form).map(|_| ()),
                "drafting" => names::drafting(&form).map(|_| ()),
                "draft_len" => names::draft_len(&form).map(|_| ()),
                "tree" => names::tree(&form).map(|_| ()),
                other => panic!("axis {other}"),
            };
            found.unwrap_or_else(|error| panic!("{}: {error}", axis.name));
        }
    }
}
