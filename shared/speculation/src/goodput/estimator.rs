//! What a request measures of its rounds, and the next draft length.

use std::time::Duration;

use super::length::{Costs, best_len};
use super::line::Line;
use super::survival::{MEMORY, Survival};

/// Most that the length changes from one round to the next.
const STEP: u32 = 2;

/// The length of the first round.
const FIRST: u32 = 4;

/// Steps of the target alone before drafting is tried again, at first and at most.
const REST: u32 = 16;
const LONGEST_REST: u32 = 512;

/// A round, as measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    /// Levels of the draft tree; the draft tokens of a chain. 0 for a step of the target alone.
    pub levels: u32,
    /// Nodes of the draft tree: what the verifier scored beside the root.
    pub nodes: u32,
    /// Draft tokens accepted: the length of the accepted path.
    pub accepted: u32,
    /// Whether the target's choice ended the path before the last level. An end token does not.
    pub refused: bool,
    /// From the request for the draft to its answer; none where nothing was asked of the drafter, or the
    /// time does not count: the request was repeated, or the drafter had a prompt or the tokens of a rest
    /// to catch up with.
    pub draft: Option<Duration>,
    /// The same of the verifier.
    pub verify: Option<Duration>,
}

/// Acceptance and times, as measured so far.
///
/// Acceptance is measured for each position of a draft by itself. Draft time is fitted as
/// fixed + slope · levels and verify time as fixed + slope · (nodes + 1), round trips included; one round that
/// took far longer than expected changes little. What a token of
/// the target alone takes is measured where it decodes several in one go, without a round trip for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimator {
    survival: Survival,
    draft: Line,
    verify: Line,
    /// Seconds that the target alone took, and tokens it made in them.
    alone: (f64, f64),
    /// Whether the drafter is asked in rounds without draft tokens too.
    always_drafts: bool,
    /// Nodes of a level, as last seen.
    width: f64,
    /// The length last decided.
    len: u32,
    /// Steps of the target alone in a row.
    rested: u32,
    /// How many of them there are before drafting is tried again.
    rest: u32,
}

impl Default for Estimator {
    fn default() -> Self {
        Self {
            survival: Survival::default(),
            // A draft model takes its time for each token, a target model for the forward.
            draft: Line::new(MEMORY, 1.0),
            verify: Line::new(MEMORY, 0.0),
            alone: (0.0, 0.0),
            always_drafts: false,
            width: 1.0,
            len: FIRST,
            rested: 0,
            rest: REST,
        }
    }
}

impl Estimator {
    /// Takes note of a round.
    pub fn observe(&mut self, round: Round) {
        if let Some(took) = round.draft {
            self.draft
                .observe(f64::from(round.levels), took.as_secs_f64());
            self.always_drafts |= round.levels == 0;
        } else {
            self.draft.fade(1);
        }
        if let Some(took) = round.verify {
            let scored = f64::from(round.nodes) + 1.0;
            self.verify.observe(scored, took.as_secs_f64());
        }
        if round.levels == 0 {
            self.rested += 1;
            return;
        }
        // Steps of the target alone tell nothing of acceptance, and must not make it forgotten: drafting
        // that does not pay for want of it would begin anew after a few of them.
        self.survival.observe(round.accepted, round.refused);
        self.width = f64::from(round.nodes) / f64::from(round.levels);
        if self.best(u32::MAX) > 0 {
            self.rest = REST;
            self.rested = 0;
        } else if round.draft.is_some() {
            if self.rested >= self.rest {
                // It was tried, and does not pay yet.
                self.rest = (self.rest * 2).min(LONGEST_REST);
            }
            self.rested = 0;
        }
    }

    /// Takes note of `tokens` that the target decoded alone in one go, and of the time they took if it
    /// counts.
    pub fn observe_alone(&mut self, tokens: u32, took: Option<Duration>) {
        self.rested += tokens;
        // What rounds cost before is forgotten meanwhile: the next try is to decide, not the hiccup that may
        // have ended drafting.
        self.draft.fade(tokens);
        self.verify.fade(tokens);
        if let Some(took) = took {
            let (seconds, counted) = self.alone;
            let kept = MEMORY.powi(i32::try_from(tokens).unwrap_or(i32::MAX));
            self.alone = (
                seconds * kept + took.as_secs_f64(),
                counted * kept + f64::from(tokens),
            );
        }
    }

    /// How many tokens the target is to make alone before drafting is tried again; at least 1.
    pub fn rest(&self) -> u32 {
        self.rest.saturating_sub(self.rested).max(1)
    }

    /// The measured acceptance of a draft token whose predecessors were accepted, of all positions together.
    pub fn acceptance(&self) -> f64 {
        self.survival.of_all()
    }

    /// What a round costs, in seconds; none before both peers were measured.
    pub fn costs(&self) -> Option<Costs> {
        let is_known = self.draft.is_known() && self.verify.is_known();
        let step = self.verify.fixed() + self.verify.slope();
        let fixed = self.draft.fixed() + step;
        let (seconds, tokens) = self.alone;
        let alone = match tokens > 0.0 {
            _ if self.always_drafts => fixed,
            true => seconds / tokens,
            false => step,
        };
        is_known.then_some(Costs {
            fixed,
            per_token: self.draft.slope() + self.verify.slope() * self.width,
            alone,
        })
    }

    /// The best length known, at most `most`.
    fn best(&self, most: u32) -> u32 {
        match self.costs() {
            Some(costs) => best_len(self.survival.by_position(), costs, most),
            None => FIRST.min(most),
        }
    }

    /// The length of the next round: the best one, at most 2 from `current`, never above `most`. 0 asks
    /// for a step of the target alone; after some of those it is not 0 until a round was timed, to see
    /// whether drafting pays by now.
    pub fn next(&self, current: u32, most: u32) -> u32 {
        let best = self.best(most);
        let is_due = best == 0 && self.rested >= self.rest;
        let wanted = if is_due { STEP } else { best };
        let (least, largest) = (current.saturating_sub(STEP), current.saturating_add(STEP));
        wanted.clamp(least, largest).min(most)
    }

    /// Decides the length of the next round, at most `most`, from where it stands. The most that is left
    /// of a request is no such bound: the next request goes on from the length decided here.
    pub fn decide(&mut self, most: u32) -> u32 {
        self.len = self.next(self.len.min(most), most);
        self.len
    }
}

#[cfg(test)]
mod tests;
