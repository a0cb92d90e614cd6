//! The axes of a request as they are listed to users.

use super::SPARSE_TOP;
use super::names::{self, ALTERNATES, COMB, DRAFT_CAP, DRAFT_MOST};
use crate::drafting::policies::POLICIES;
use crate::proposal::SPARSE_MOST;
use crate::verification::VERIFICATIONS;

/// An axis of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Field of a request, and its name in reports.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    /// What holds where a request does not say.
    pub default: String,
    /// Its values, the default first where one of them is.
    pub values: Vec<AxisValue>,
}

/// A value of an axis, or a form of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisValue {
    /// As it is written; capital letters after a colon stand for a number.
    pub form: &'static str,
    /// The range of its number; empty where it has none.
    pub range: String,
    /// One line.
    pub help: &'static str,
}

fn plain(form: &'static str, help: &'static str) -> AxisValue {
    ranged(form, String::new(), help)
}

fn ranged(form: &'static str, range: String, help: &'static str) -> AxisValue {
    AxisValue { form, range, help }
}

fn named(forms: Vec<&'static str>) -> Vec<AxisValue> {
    forms.into_iter().map(|form| plain(form, "")).collect()
}

/// Every axis of a request with its values. What a target or a plan of this name is stands with the
/// methods and rules; whether two axes go together is said when they are asked for.
pub fn axes_listing() -> Vec<Axis> {
    let of_method = || "the method's".to_owned();
    vec![
        Axis {
            name: "plan",
            help: "which model does what, in which order",
            default: of_method(),
            values: named(names::plans()),
        },
        drafting(),
        draft_len(),
        tree(),
        Axis {
            name: "target",
            help: "the distribution π that the output is drawn from",
            default: of_method(),
            values: named(names::targets()),
        },
        Axis {
            name: "verification",
            help: "how draft tokens are accepted",
            default: of_method(),
            values: VERIFICATIONS
                .iter()
                .filter(|verification| verification.is_choosable)
                .map(|verification| plain(verification.name, verification.summary))
                .collect(),
        },
        proposal(),
        Axis {
            name: "accept_at",
            help: "who decides which draft tokens are accepted",
            default: names::acceptors()[0].to_owned(),
            values: named(names::acceptors()),
        },
    ]
}

fn drafting() -> Axis {
    Axis {
        name: "drafting",
        help: "who proposes draft tokens",
        default: names::draftings()[0].to_owned(),
        values: vec![
            plain("model", "the draft model"),
            plain(
                "max-gram",
                "no model: copies what followed the longest earlier match of the text's end, then bigrams",
            ),
            plain(
                "cascade",
                "several draft models: the larger ones review what the smaller ones propose",
            ),
        ],
    }
}

fn draft_len() -> Axis {
    Axis {
        name: "draft_len",
        help: "how many tokens are drafted in a round; the draft cap bounds all but a number",
        default: format!("auto in plan speculative; at most {DRAFT_CAP}"),
        values: [
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
        .collect(),
    }
}

fn tree() -> Axis {
    Axis {
        name: "tree",
        help: "the shape of a draft block; trees go with coupled verification of the exact target",
        default: names::trees()[0].to_owned(),
        values: vec![
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
        ],
    }
}

fn proposal() -> Axis {
    Axis {
        name: "proposal",
        help: "how much of the draft distribution is sent to the verifier",
        default: format!(
            "what is needed; sparse:{SPARSE_TOP} where a part of the distribution will do"
        ),
        values: vec![
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
        ],
    }
}
