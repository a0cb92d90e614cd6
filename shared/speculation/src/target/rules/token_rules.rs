//! The rules for tokens (§4, token-specific speculative cascades): a token is refused whose probability is too far
//! below the target's largest.

use super::{Alpha, Judge, Judged, Rule, RuleSpec};
use crate::target::Needs;

/// Refuses token v iff q(v) < max p - α.
pub const TOKEN_V1: Rule = Rule(&RuleSpec {
    name: "token-v1",
    summary: "refuse tokens whose draft probability is below max p - alpha",
    alpha: Alpha {
        default: 0.1,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs {
        draft_unscaled: true,
        ..Needs::MAX
    },
    judge: Judge::Tokens {
        judged: Judged::Draft,
        bound: |most, alpha| most - alpha,
    },
    stop_rule: None,
});

/// Refuses token v iff p(v) < max p - α.
pub const TOKEN_V2: Rule = Rule(&RuleSpec {
    name: "token-v2",
    summary: "refuse tokens whose target probability is below max p - alpha",
    alpha: Alpha {
        default: 0.1,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs {
        target_unscaled: true,
        ..Needs::MAX
    },
    judge: Judge::Tokens {
        judged: Judged::Target,
        bound: |most, alpha| most - alpha,
    },
    stop_rule: None,
});

/// Refuses token v iff p(v) < max p (1 - α).
pub const TOKEN_V3: Rule = Rule(&RuleSpec {
    name: "token-v3",
    summary: "refuse tokens whose target probability is below max p (1 - alpha)",
    alpha: Alpha {
        default: 0.3,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs {
        target_unscaled: true,
        ..Needs::MAX
    },
    judge: Judge::Tokens {
        judged: Judged::Target,
        bound: |most, alpha| most * (1.0 - alpha),
    },
    stop_rule: None,
});
