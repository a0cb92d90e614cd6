//! The forms of the axes' values, and what holds where a request does not say.

use super::SPARSE_TOP;
use super::names::{self, ALTERNATES, COMB, DRAFT_CAP, DRAFT_MOST};
use super::setting::AxisValue;
use crate::drafting::policies::POLICIES;
use crate::proposal::SPARSE_MOST;
use crate::verification::VERIFICATIONS;

fn plain(form: &'static str, help: &'static str) -> AxisValue {
    ranged(form, String::new(), help)
}

fn ranged(form: &'static str, range: String, help: &'static str) -> AxisValue {
    AxisValue { form, range, help }
}

fn named(forms: Vec<&'static str>) -> Vec<AxisValue> {
    forms.into_iter().map(|form| plain(form, "")).collect()
}

// What holds where a request does not say.

pub(super) fn of_method() -> String {
    "the method's".to_owned()
}

pub(super) fn model() -> String {
    names::draftings()[0].to_owned()
}

pub(super) fn auto() -> String {
    format!("auto in plan speculative; at most {DRAFT_CAP}")
}

pub(super) fn chain() -> String {
    names::trees()[0].to_owned()
}

pub(super) fn needed() -> String {
    format!("what is needed; sparse:{SPARSE_TOP} where a part of the distribution will do")
}

pub(super) fn verifier() -> String {
    names::acceptors()[0].to_owned()
}

// The values, the default first where one of them is.

pub(super) fn plans() -> Vec<AxisValue> {
    named(names::plans())
}

pub(super) fn targets() -> Vec<AxisValue> {
    named(names::targets())
}

pub(super) fn acceptors() -> Vec<AxisValue> {
    named(names::acceptors())
}

pub(super) fn verifications() -> Vec<AxisValue> {
    let choosable = VERIFICATIONS.iter().filter(|one| one.is_choosable);
    choosable.map(|one| plain(one.name, one.summary)).collect()
}

pub(super) fn draftings() -> Vec<AxisValue> {
    vec![
        plain("model", "the draft model"),
        plain(
            "max-gram",
            "no model: copies what followed the longest earlier match of the text's end, then bigrams",
        ),
        plain(
            "cascade",
            "several draft models: the larger ones review what the smaller ones propose",
        ),
    ]
}

pub(super) fn draft_lens() -> Vec<AxisValue> {
    [
            plain(
                "auto",
                "as many as pay, by measured acceptance, times and load; none where drafting does not pay",
            ),
            ranged("K", format!("1 to {DRAFT_MOST}"), "always this many"),
        ]
        .into_iter()
        .chain(POLICIES.iter().map(|policy| {
            let (least, most) = policy.range;
            ranged(policy.form, format!("{least} to {most}"), policy.summary)
        }))
        .collect()
}

pub(super) fn trees() -> Vec<AxisValue> {
    vec![
        plain("chain", "one token after the other"),
        ranged(
            "comb:N",
            format!("{} to {}", COMB.0, COMB.1),
            "each token has N - 1 siblings beside it, the most likely other tokens",
        ),
        ranged(
            "alternates:N",
            format!("{} to {}", ALTERNATES.0, ALTERNATES.1),
            "each token has the N next choices under the shared noise beside it",
        ),
    ]
}

pub(super) fn proposals() -> Vec<AxisValue> {
    vec![
        plain("none", "nothing"),
        plain(
            "point",
            "only that the draft is certain: temperature 0, max-gram",
        ),
        ranged(
            "sparse:K",
            format!("1 to {SPARSE_MOST}"),
            "its K most likely tokens; drafts are then drawn from these alone",
        ),
        plain("dense:f32", "all of it"),
        plain("dense:f16", "all of it, rounded"),
    ]
}
