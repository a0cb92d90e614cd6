//! The optimal rule, of the speculative cascade: what deferring gains, against α times what it costs in
//! acceptance, which is the distance of the two models (Lemma 3 and equation 8).

use super::{Alpha, Judge, Rule, RuleSpec};
use crate::target::Needs;

/// Defers iff max q < max p - α TV(p, q).
pub const OPT: Rule = Rule(&RuleSpec {
    name: "opt",
    summary: "like diff, with alpha times the distance of the two distributions",
    alpha: Alpha {
        default: 0.5,
        range: (-100.0, 100.0),
    },
    needs: |_| Needs::MAX,
    judge: Judge::Position(|at, alpha| {
        at.draft.max < at.target.max - alpha * (at.total_variation)()
    }),
    stop_rule: None,
});

/// Defers iff H(p) < H(q) - α TV(p, q).
pub const OPT_LOG: Rule = Rule(&RuleSpec {
    name: "opt-log",
    summary: "like diff-log, with alpha times the distance of the two distributions",
    alpha: Alpha {
        default: 0.5,
        range: (-100.0, 100.0),
    },
    needs: |_| Needs::ENTROPY,
    judge: Judge::Position(|at, alpha| {
        at.target.entropy < at.draft.entropy - alpha * (at.total_variation)()
    }),
    stop_rule: None,
});
