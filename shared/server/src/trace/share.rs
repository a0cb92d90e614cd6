//! A peer's share of a round: where its time went.

use std::time::{Duration, Instant};

use super::{Kind, Span, names};

/// Where a peer's time went. The parts are taken to have followed one another, as far as they are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Waiting for the engine.
    pub queue: Duration,
    /// In forwards.
    pub forward: Duration,
    /// Deciding.
    pub accept: Duration,
    /// Sequences in the largest forward.
    pub batch: u32,
    /// Tokens of the session that were forwarded.
    pub forwarded_tokens: u32,
    /// Whether the forwards also brought the session up to date.
    pub prefills: bool,
}

impl Span {
    /// Adds spans of the parts of `share`, which began at `began`, within this one. `measured_by` tells where
    /// the figures come from, if not from here.
    pub fn add_share(&mut self, share: &Share, began: Instant, measured_by: Option<&'static str>) {
        if !self.is_recorded() {
            return;
        }
        let forward = if share.prefills {
            names::PREFILL
        } else {
            names::FORWARD
        };
        let parts = [
            (names::QUEUE, share.queue),
            (forward, share.forward),
            (names::ACCEPT, share.accept),
        ];
        let mut from = began;
        for (name, took) in parts.into_iter().filter(|(_, took)| !took.is_zero()) {
            let mut part = self.child_at(name, Kind::Internal, from);
            if name == forward {
                part.set(names::BATCH, i64::from(share.batch));
                part.set(names::FORWARDED_TOKENS, i64::from(share.forwarded_tokens));
            }
            if let Some(measured_by) = measured_by {
                part.set(names::MEASURED_BY, measured_by);
            }
            from += took;
            part.end_at(from);
        }
        self.set(names::BATCH, i64::from(share.batch));
    }
}
