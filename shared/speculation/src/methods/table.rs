//! The one table of settings. A setting is added by an entry here, and by the code where it acts.
//!
//! Flags, JSON fields, gRPC, `outrider methods`, completion and the description of the HTTP API are made of it.

use std::borrow::Cow;

use super::names::{self, DRAFT_CAP, DRAFT_MOST};
use super::setting::{AxisValue, Setting, SettingKind};
use super::values::{Range, SettingValue};
use crate::bad_value::BadValue;
use crate::target::{RULES, TargetDistribution, rules};

/// Defines each setting, and the table of all.
macro_rules! settings {
    ($($id:ident = $setting:expr;)*) => {
        $(
            #[doc = concat!("The setting `", stringify!($id), "`; its field `help` says what it does.")]
            pub static $id: Setting = $setting;
        )*

        /// Every setting.
        pub static SETTINGS: &[&Setting] = &[$(&$id),*];
    };
}

const fn number(least: f64, most: f64, default: f64) -> SettingKind {
    SettingKind::Parameter {
        range: Range::Number(least, most),
        default: SettingValue::Number(default),
    }
}

const fn count(least: u32, most: u32, default: u32) -> SettingKind {
    SettingKind::Parameter {
        range: Range::Count(least, most),
        default: SettingValue::Number(default as f64),
    }
}

const fn flag(default: bool) -> SettingKind {
    SettingKind::Parameter {
        range: Range::Flag,
        default: SettingValue::Flag(default),
    }
}

const fn axis(
    default: &'static str,
    values: fn() -> Vec<AxisValue>,
    check: fn(&str) -> Result<(), BadValue>,
) -> SettingKind {
    SettingKind::Axis {
        default,
        values,
        check,
    }
}

/// Where a method says what holds if a request does not.
const OF_METHOD: &str = "the method's";

/// Where a drafter says it.
const OF_DRAFTER: &str = "the drafter's";

settings! {
    PAPER_DEFAULTS = Setting {
        name: "paper_defaults",
        of: "",
        placeholder: "BOOL",
        help: "whether what is not given is as in its paper where ours differs: a sequence cascade's score is the sum, \
               drafting cascade has K 2+10/0+10 and ten tokens of Max-Gram",
        kind: flag(false),
    };
    PLAN = Setting {
        name: "plan",
        of: "",
        placeholder: "PLAN",
        help: "which model does what, in which order",
        kind: axis(
            OF_METHOD,
            names::plans,
            |text| names::plan(text).map(drop),
        ),
    };
    DRAFTING = Setting {
        name: "drafting",
        of: "",
        placeholder: "WHO",
        help: "who proposes draft tokens",
        kind: axis(
            "model",
            names::draftings,
            |text| names::drafting(text).map(drop),
        ),
    };
    DRAFT_LEN = Setting {
        name: "draft_len",
        of: "",
        placeholder: "K|POLICY",
        help: "draft tokens a round; the draft cap bounds all but a number",
        kind: axis(
            "auto in plan speculative; at most 20",
            names::draft_lens,
            |text| names::draft_len(text).map(drop),
        ),
    };
    CAP = Setting {
        name: "draft_cap",
        of: "",
        placeholder: "N",
        help: "most draft tokens a round where a policy or a cascade decides",
        kind: count(1, DRAFT_MOST, DRAFT_CAP),
    };
    TREE = Setting {
        name: "tree",
        of: "",
        placeholder: "SHAPE",
        help: "the shape of a draft block; trees go with coupled verification of the exact target",
        kind: axis(
            "chain",
            names::trees,
            |text| names::tree(text).map(drop),
        ),
    };
    SCHEDULE = Setting {
        name: "schedule",
        of: "",
        placeholder: "NAME",
        help: "whether target and drafts take turns; stream goes with coupled verification of the exact target",
        kind: axis(
            names::AUTO,
            names::schedules,
            |text| names::schedule(text).map(drop),
        ),
    };
    CASCADE_K = Setting {
        name: "cascade_k",
        of: "drafting cascade",
        placeholder: "ROWS",
        help: "matrix K: how many tokens target and draft models want of each draft",
        kind: axis(
            OF_DRAFTER,
            names::cascade_ks,
            |text| names::cascade_k(text).map(drop),
        ),
    };
    CASCADE_LENIENCE = Setting {
        name: "cascade_lenience",
        of: "drafting cascade",
        placeholder: "N",
        help: "how much less likely than its proposer a reviewer within the cascade may find a token that it keeps",
        kind: axis(
            OF_DRAFTER,
            names::cascade_leniences,
            |text| names::cascade_lenience(text).map(drop),
        ),
    };
    CASCADE_MAX_GRAM_TOKENS = Setting {
        name: "cascade_max_gram_tokens",
        of: "drafting cascade",
        placeholder: "N",
        help: "tokens that Max-Gram proposes at a time within the cascade",
        kind: axis(
            OF_DRAFTER,
            names::cascade_max_gram_tokens,
            |text| names::cascade_max_gram(text).map(drop),
        ),
    };
    TARGET = Setting {
        name: "target",
        of: "",
        placeholder: "NAME",
        help: "the distribution that the output is drawn from",
        kind: axis(
            OF_METHOD,
            names::targets,
            |text| names::target(text).map(drop),
        ),
    };
    VERIFICATION = Setting {
        name: "verification",
        of: "",
        placeholder: "NAME",
        help: "how draft tokens are accepted",
        kind: axis(
            OF_METHOD,
            names::verifications,
            |text| names::verification(text).map(drop),
        ),
    };
    PROPOSAL = Setting {
        name: "proposal",
        of: "",
        placeholder: "FORM",
        help: "how much of the draft distribution is sent to the verifier",
        kind: axis(
            "what is needed; sparse:32 where a part of the distribution will do",
            names::proposals,
            |text| names::proposal(text).map(drop),
        ),
    };
    ACCEPT_AT = Setting {
        name: "accept_at",
        of: "",
        placeholder: "WHO",
        help: "who decides which draft tokens are accepted",
        kind: axis(
            "verifier",
            names::acceptors,
            |text| names::accepts_at_coordinator(text).map(drop),
        ),
    };
    RULE = Setting {
        name: "rule",
        of: "cascades",
        placeholder: "NAME",
        help: "deferral rule: where the target decides instead of the draft model",
        kind: SettingKind::Parameter {
            range: Range::Rule(RULES),
            default: SettingValue::Text(Cow::Borrowed(rules::CHOW.name)),
        },
    };
    ALPHA = Setting {
        name: "alpha",
        of: "cascades, lossy sampling, BiLD",
        placeholder: "A",
        help: "trade-off between the two models: range and default depend on method and rule",
        kind: SettingKind::Parameter {
            range: Range::Number(f64::NEG_INFINITY, f64::INFINITY),
            default: SettingValue::NONE,
        },
    };
    BETA = Setting {
        name: "beta",
        of: "lossy sampling",
        placeholder: "B",
        help: "divides p in the residual (p/beta - q)+; at least 1 - alpha, or tuned at each position",
        kind: SettingKind::Parameter {
            range: Range::Beta(0.0, TargetDistribution::MAX_BETA),
            default: SettingValue::NONE,
        },
    };
    KL_BUDGET = Setting {
        name: "kl_budget",
        of: "lossy sampling",
        placeholder: "NATS",
        help: "in place of alpha and beta: accepts as many draft tokens as it can while the divergence of what \
               comes out, KL(p || out), is at most this at each position, in nats; 0 is exact",
        kind: SettingKind::Parameter {
            range: Range::NumberOrNone(0.0, TargetDistribution::MAX_KL_BUDGET),
            default: SettingValue::NONE,
        },
    };
    FALLBACK = Setting {
        name: "fallback",
        of: "BiLD",
        placeholder: "P",
        help: "the drafter hands over to the target where its confidence is below this",
        kind: number(0.0, 1.0, 0.6),
    };
    WINDOW = Setting {
        name: "window",
        of: "BiLD",
        placeholder: "N",
        help: "most draft tokens in a row before the target checks them",
        kind: count(1, 64, 10),
    };
    VERIFY_ON_FINISH = Setting {
        name: "verify_on_finish",
        of: "BiLD",
        placeholder: "BOOL",
        help: "whether the target also checks the draft tokens that end the output",
        kind: flag(false),
    };
    CODE_VARIANT = Setting {
        name: "code_variant",
        of: "BiLD",
        placeholder: "BOOL",
        help: "whether it runs as the authors' code does: the target begins, adds a second token after each one \
               that it replaced, and keeps the whole block where it would choose the refused token itself",
        kind: flag(false),
    };
    MAX_RUN = Setting {
        name: "max_run",
        of: "token cascade",
        placeholder: "N",
        help: "most draft tokens in a row before the target must add one; 0 is no limit",
        kind: count(0, 1000, 10),
    };
    MEAN = Setting {
        name: "mean",
        of: "sequence cascade",
        placeholder: "BOOL",
        help: "whether an answer's score is the mean log probability of its tokens, rather than their sum, \
               which falls with every token",
        kind: flag(true),
    };
}

/// The settings of drafting: who drafts, how much, in which shape and when.
pub static OF_DRAFTING: [&Setting; 8] = [
    &DRAFTING,
    &DRAFT_LEN,
    &CAP,
    &TREE,
    &SCHEDULE,
    &CASCADE_K,
    &CASCADE_LENIENCE,
    &CASCADE_MAX_GRAM_TOKENS,
];

impl Setting {
    /// Finds the setting called `name`, which may be written with hyphens.
    ///
    /// # Errors
    /// If there is none; the message lists them all.
    pub fn find(name: &str) -> Result<&'static Self, BadValue> {
        let name = name.replace('-', "_");
        let found = SETTINGS.iter().find(|setting| setting.name == name);
        found.copied().ok_or_else(|| {
            let known: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            let problem = format!("is no setting, expected one of {}", known.join(", "));
            BadValue::new(name, problem)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::SPARSE_TOP;

    #[test]
    fn defaults_are_those_that_hold() {
        let default = |setting: &Setting| match setting.kind {
            SettingKind::Axis { default, .. } => default,
            SettingKind::Parameter { .. } => panic!("no axis"),
        };
        let auto = format!("auto in plan speculative; at most {DRAFT_CAP}");
        assert_eq!(default(&DRAFT_LEN), auto);
        let sparse = format!("sparse:{SPARSE_TOP} ");
        assert!(default(&PROPOSAL).contains(&sparse));
        for axis in [&DRAFTING, &TREE, &SCHEDULE, &ACCEPT_AT] {
            assert_eq!(default(axis), axis.forms()[0]);
        }
    }
}
