//! The confidences of both models, compared.

use super::{Alpha, Judge, Rule, RuleSpec};
use crate::target::Needs;

/// Defers iff max q < max p - α.
pub const DIFF: Rule = Rule(&RuleSpec {
    name: "diff",
    summary: "defer where the target's largest probability leads by more than alpha",
    alpha: Alpha {
        default: 0.1,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs::MAX,
    judge: Judge::Position(|at, alpha| at.draft.max < at.target.max - alpha),
    stop_rule: None,
});

/// Defers iff H(p) < H(q) - α.
pub const DIFF_LOG: Rule = Rule(&RuleSpec {
    name: "diff-log",
    summary: "defer where the target's entropy is lower by more than alpha, in nats",
    alpha: Alpha {
        default: 0.1,
        range: (-100.0, 100.0),
    },
    needs: |_| Needs::ENTROPY,
    judge: Judge::Position(|at, alpha| at.target.entropy < at.draft.entropy - alpha),
    stop_rule: None,
});
