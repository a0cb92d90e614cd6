//! Configurations of sessions.

use std::time::Duration;

use speculation::drafting::TreeShape;
use speculation::session::{Plan, SessionConfig};

/// Returns a configuration with these limits, and the time limits of a coordinator.
pub fn limits(plan: Plan, draft_len: u32, max_tokens: u32, vocab_size: u32) -> SessionConfig {
    SessionConfig {
        plan,
        draft_len,
        goodput: None,
        streams: false,
        tree: TreeShape::Chain,
        bonus_q: false,
        lazy_bonus: false,
        depends_on_draft: !matches!(plan, Plan::Speculative | Plan::TargetOnly | Plan::DraftOnly),
        carries_layers: false,
        prompt_scores: 0,
        max_tokens,
        end_tokens: Vec::new(),
        vocab_size,
        round_timeout: Duration::from_secs(30),
        draft_timeout: Duration::from_secs(5),
        retries: 2,
        last_resort_retries: 5,
        retry_pause: Duration::from_millis(20),
        fallback_tokens: 32,
        deadline: None,
    }
}
