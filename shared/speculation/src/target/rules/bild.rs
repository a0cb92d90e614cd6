//! BiLD* of the paper (Appendix E.5): how badly the target model would predict the draft model.

use super::{Alpha, Judge, Rule, RuleSpec};
use crate::target::Needs;

/// Defers iff D(q, p) > α.
pub const BILD: Rule = Rule(&RuleSpec {
    name: "bild",
    summary: "defer where the cross entropy of draft and target is above alpha, in nats",
    alpha: Alpha {
        default: 5.0,
        range: (0.0, 100.0),
    },
    needs: |greedy| Needs {
        draft_unscaled: !greedy,
        dense: !greedy,
        target_unscaled: true,
        ..Needs::DRAFT
    },
    judge: Judge::Position(|at, alpha| (at.cross_entropy)() > alpha),
    stop_rule: None,
});
