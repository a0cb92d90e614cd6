//! Chow's rule: the draft model's confidence alone decides, so that a drafter can apply the rule by itself.

use super::{Alpha, Judge, Rule, RuleSpec};
use crate::drafting::StopRule;
use crate::drafting::policies::{CONFIDENCE, ENTROPY};
use crate::target::Needs;

/// Defers iff max q < 1 - α.
pub const CHOW: Rule = Rule(&RuleSpec {
    name: "chow",
    summary: "defer where the draft model's largest probability is below 1 - alpha",
    alpha: Alpha {
        default: 0.5,
        range: (0.0, 1.0),
    },
    needs: |_| Needs::MAX,
    judge: Judge::Position(|at, alpha| at.draft.max < 1.0 - alpha),
    stop_rule: Some(|alpha| StopRule::new(&CONFIDENCE, 1.0 - alpha)),
});

/// Defers iff H(q) > α.
pub const CHOW_LOG: Rule = Rule(&RuleSpec {
    name: "chow-log",
    summary: "defer where the draft model's entropy is above alpha, in nats",
    alpha: Alpha {
        default: 1.0,
        range: (0.0, 100.0),
    },
    needs: |_| Needs::ENTROPY,
    judge: Judge::Position(|at, alpha| at.draft.entropy > alpha),
    stop_rule: Some(|alpha| StopRule::new(&ENTROPY, alpha)),
});
