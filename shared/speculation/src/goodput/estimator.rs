//! What a request measures of its rounds, and the next draft length.

use std::time::Duration;

use super::decision::{Decision, Why};
use super::ledger::{FIRST_REST, Ledger, LoadCosts};
use super::length::{Best, Costs, best_len};
use super::price::Price;
use super::survival::Survival;

/// Most that the length changes from one round to the next.
const STEP: u32 = 2;

/// The length of the first round.
const FIRST: u32 = 4;

/// Timed rounds of a try, and how much of what was known of their cost is forgotten before: the try decides, not
/// what was measured long ago.
const TRY: u32 = 3;
const FORGOTTEN: u32 = 40;

/// Seconds that a try is given before another one begins.
const TRY_SECONDS: f64 = 2.0;

/// Tries may cost this share of the target's tokens, unless they would then be rarer than the rarest below.
const TRY_SHARE: f64 = 0.01;

/// Fewest and most tokens of the target alone between two tries.
const REST: (f64, f64) = (512.0, 1e6);

/// Seconds of rests between two tries after one in vain, for each of the sessions served up to so many; twice as many
/// after each further one, and how often they double: at a load that does not change there is little to learn.
const PAUSE: f64 = 0.5;
const PAUSED_FOR: f64 = 8.0;
const DOUBLED: u32 = 6;

/// Tokens of rounds with drafts after which the target alone is measured again for [`FIRST_REST`] tokens; so many times
/// as many where drafts gain so much that it makes hardly a difference.
const ALONE_EVERY: u64 = 1_024;
const SURE_GAIN: f64 = 1.5;
const SURE_TIMES: u64 = 16;

/// Tokens of the target alone whose mean time counts as one observation: tokens come in bursts, and neither the first of
/// one nor the others say what a token takes.
const SAMPLE: u32 = 8;

/// Shortest mean time of a sample, and longest time between two of its tokens, by the forward that the verifier reports
/// and its turns: tokens that a client held up which does not read come late, and then all at once.
const HELD_UP: (f64, f64) = (0.7, 32.0);

/// Longest that the target decodes alone before it is looked whether drafting pays by now, at the speed measured under
/// the present load: if that falls, these tokens take less time. To begin anew costs a round trip.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// How much drafting must gain at least, and lose, for a session to change its way: this, and up to as much more by
/// the session's own seed, so that sessions do not change together.
const HYSTERESIS: f64 = 0.02;

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

/// What a session does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Way {
    /// The target decodes alone.
    #[default]
    Rests,
    /// Blocks are drafted, because they pay.
    Drafts,
    /// Blocks are drafted until so many more rounds were timed, to learn whether they pay.
    Tries(u32),
}

/// Acceptance, times and prices, as known so far.
///
/// A draft token is worth drafting iff the tokens that it is likely to save bring more time than it costs: the
/// session, in its own time, and the sequences that share forwards with it, in theirs. With costs per round that is
/// the length of highest throughput, [`Costs`] being sums of both. Acceptance is the session's own, for each position
/// of a draft by itself. Times are those of all sessions of the kind at the same load of the verifier: draft time is
/// fitted as fixed + slope · levels and verify time as fixed + slope · (nodes + 1), round trips included; one round
/// that took far longer than expected changes little. What others wait comes from what the peers say of their
/// engines ([`Price`]).
#[derive(Clone, Debug)]
pub struct Estimator {
    survival: Survival,
    ledger: Ledger,
    drafter: Price,
    verifier: Price,
    /// Whether the drafter takes its time from the verifier.
    shares_cores: bool,
    /// Whether the draft distribution is needed at every position, so that the session cannot rest.
    always_drafts: bool,
    /// Nodes of a level, as last seen.
    width: f64,
    /// How much must be gained or lost for a change of way.
    hysteresis: f64,
    way: Way,
    decision: Decision,
    /// Tokens of the target alone, and the seconds they took, that are no sample yet.
    sampled: (u32, f64),
    /// Seconds that this session's rounds with drafts took, and that the target alone takes for what they emitted.
    spent: f64,
    saved: f64,
}

impl Default for Estimator {
    fn default() -> Self {
        Self {
            survival: Survival::default(),
            ledger: Ledger::default(),
            drafter: Price::default(),
            verifier: Price::default(),
            shares_cores: false,
            always_drafts: false,
            width: 1.0,
            hysteresis: HYSTERESIS,
            way: Way::Rests,
            decision: Decision::default(),
            sampled: (0, 0.0),
            spent: 0.0,
            saved: 0.0,
        }
    }
}

impl Estimator {
    /// The estimator of a new session, which goes on from what this one knows; costs stay common to both. `spread`,
    /// 0 to 1, differs between sessions; `may_rest` says whether the target may decode alone.
    #[must_use]
    pub fn begin(&self, spread: f64, may_rest: bool) -> Self {
        let (drafter, verifier) = self.ledger.prices();
        Self {
            drafter,
            verifier,
            hysteresis: HYSTERESIS * (1.0 + spread.clamp(0.0, 1.0)),
            always_drafts: !may_rest,
            way: Way::Rests,
            decision: Decision::default(),
            sampled: (0, 0.0),
            spent: 0.0,
            saved: 0.0,
            ..self.clone()
        }
    }

    /// Takes note of what the drafter says of its load, and whether it takes its time from the verifier's cores.
    pub fn drafter_said(&mut self, price: Price, shares_cores: Option<bool>) {
        self.drafter = price;
        self.shares_cores = shares_cores.unwrap_or(self.shares_cores);
        self.ledger.drafter_said(price);
    }

    /// Takes note of what the verifier says of its load.
    pub fn verifier_said(&mut self, price: Price) {
        self.verifier = price;
        self.ledger.verifier_said(price);
    }

    /// Takes note of a round.
    pub fn observe(&mut self, round: Round) {
        let emitted = round.accepted + 1;
        let alone = self.at_load(|costs| {
            if let Some(took) = round.draft {
                let levels = f64::from(round.levels);
                costs.draft.observe(levels, took.as_secs_f64());
            }
            if let Some(took) = round.verify {
                let scored = f64::from(round.nodes) + 1.0;
                costs.verify.observe(scored, took.as_secs_f64());
            }
            costs.drafted += u64::from(emitted);
            costs.alone.fixed()
        });
        // Steps of the target alone say nothing of acceptance, and must not make it forgotten: drafting
        // that does not pay for want of it would begin anew after a few of them.
        if round.levels == 0 {
            return;
        }
        if let (Some(draft), Some(verify)) = (round.draft, round.verify) {
            self.spent += (draft + verify).as_secs_f64();
            self.saved += alone * f64::from(emitted);
        }
        self.survival.observe(round.accepted, round.refused);
        self.width = f64::from(round.nodes) / f64::from(round.levels);
        if let Way::Tries(left) = &mut self.way
            && round.draft.is_some()
        {
            *left = left.saturating_sub(1);
        }
    }

    /// Takes note of `tokens` that the target decoded alone in one go, and of the time they took if it
    /// counts.
    pub fn observe_alone(&mut self, tokens: u32, took: Option<Duration>) {
        let sample = took.and_then(|took| self.sample(tokens, took.as_secs_f64()));
        self.at_load(|costs| {
            costs.rested += u64::from(tokens);
            if let Some(each) = sample {
                costs.alone.observe(0.0, each);
            }
        });
    }

    /// Adds tokens of the target alone to the sample; the mean time of a token, once there are enough in it.
    fn sample(&mut self, tokens: u32, took: f64) -> Option<f64> {
        // A full batch takes turns.
        let forward = self.verifier.forward() * self.verifier.turns();
        let is_held_up = forward > 0.0 && took > HELD_UP.1 * forward * f64::from(tokens);
        if is_held_up {
            self.sampled = (0, 0.0);
            return None;
        }
        self.sampled.0 += tokens;
        self.sampled.1 += took;
        if self.sampled.0 < SAMPLE {
            return None;
        }
        let (tokens, took) = std::mem::take(&mut self.sampled);
        let each = took / f64::from(tokens);
        (each >= HELD_UP.0 * self.verifier.forward()).then_some(each)
    }

    /// How many tokens the target is to make alone before it is looked again; at least 1.
    pub fn rest(&self) -> u32 {
        self.at_load(|costs| {
            if !costs.alone.is_known() || self.way == Way::Drafts {
                return FIRST_REST as u32;
            }
            let tokens = LOOK_EVERY.as_secs_f64() / costs.alone.fixed().max(f64::MIN_POSITIVE);
            (tokens as u32).max(FIRST_REST as u32)
        })
    }

    /// The measured acceptance of a draft token whose predecessors were accepted, of all positions together.
    pub fn acceptance(&self) -> f64 {
        self.survival.of_all()
    }

    /// What a round costs at the present load, in seconds, and others' time included; none before both peers were
    /// measured.
    pub fn costs(&self) -> Option<Costs> {
        self.at_load(|costs| self.costs_of(costs))
    }

    /// What was decided last, and why.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Throughput of this session's own rounds with drafts over that of the target alone at the same load, as far as
    /// both were measured; others' time is not in it.
    pub fn measured_gain(&self) -> Option<f64> {
        (self.spent > 0.0 && self.saved > 0.0).then(|| self.saved / self.spent)
    }

    /// What the verifier's other sessions wait for a row, and for a draft token that is made on the verifier's cores,
    /// in seconds.
    pub fn prices(&self) -> (f64, f64) {
        let (drafter, verifier) = (self.drafter, self.verifier);
        let stolen = if self.shares_cores {
            verifier.others() * drafter.share()
        } else {
            0.0
        };
        let row = verifier.others() * verifier.row();
        (row, drafter.others() * drafter.row() + stolen)
    }

    /// The length of the next round, at most `most`: 0 asks for [`Estimator::rest`] tokens of the target alone. The
    /// most that is left of a request is no such bound: what was tried counts for the next request too.
    pub fn decide(&mut self, most: u32) -> u32 {
        let ledger = self.ledger.clone();
        if self.way == Way::Rests {
            // A session that rests hears of no drafter: others may have.
            self.drafter = ledger.prices().0;
        }
        let load = self.verifier.load_class();
        self.decision = ledger.at(load, |costs| self.decide_at(costs, most));
        self.decision.len
    }

    fn decide_at(&mut self, costs: &mut LoadCosts, most: u32) -> Decision {
        let decided = |len, gain, why| Decision {
            len,
            gain,
            why,
            worth: None,
        };
        let Some(known) = self.costs_of(costs) else {
            let tries = matches!(self.way, Way::Tries(left) if left > 0);
            let drafts = self.always_drafts || tries || self.begins_try(costs);
            let len = if drafts { FIRST.min(most) } else { 0 };
            return decided(len, None, Why::Unknown);
        };
        let Best { len, gain } = best_len(self.survival.by_position(), known, most);
        let (len, some) = (self.near(len, most), Some(gain));
        if matches!(self.way, Way::Tries(left) if left > 0) {
            return decided(len, some, Why::Tries);
        }
        let pays = match self.way {
            Way::Drafts => gain > 1.0 - self.hysteresis,
            Way::Rests | Way::Tries(_) => gain > 1.0 + self.hysteresis,
        };
        if pays {
            self.way = Way::Drafts;
            costs.failures = 0;
            let often = if gain < SURE_GAIN { 1 } else { SURE_TIMES };
            if costs.drafted >= ALONE_EVERY * often && !self.always_drafts {
                costs.drafted = 0;
                return decided(0, some, Why::Compares);
            }
            return Decision {
                worth: Some(known.worth(gain)),
                ..decided(len, some, Why::Pays)
            };
        }
        if matches!(self.way, Way::Tries(_)) {
            costs.rest = self.pause_after(costs, known, gain);
            costs.failures += 1;
        }
        self.way = Way::Rests;
        if self.begins_try(costs) {
            return decided(len, some, Why::Tries);
        }
        decided(0, some, Why::Rests)
    }

    /// Whether this session is to try whether drafting pays: one at a time does, after as many tokens as there are
    /// to be between two tries.
    fn begins_try(&mut self, costs: &mut LoadCosts) -> bool {
        let begins = costs.alone.is_known() && costs.rested >= costs.rest;
        if begins {
            costs.rested = 0;
            // A full batch takes its time for a try: others are not to begin meanwhile.
            let second = self.verifier.sessions() / costs.alone.fixed().max(f64::MIN_POSITIVE);
            let least = (TRY_SECONDS * second).clamp(REST.0, REST.1) as u64;
            costs.rest = costs.rest.max(least);
            costs.draft.fade(FORGOTTEN);
            costs.verify.fade(FORGOTTEN);
            self.way = Way::Tries(TRY);
        }
        begins
    }

    /// `len`, at most [`STEP`] from the last length that was drafted, unless there was none.
    fn near(&self, len: u32, most: u32) -> u32 {
        let last = match self.decision.len {
            0 => FIRST,
            last => last,
        };
        let (least, largest) = (last.saturating_sub(STEP).max(1), last + STEP);
        len.clamp(least, largest).min(most)
    }

    fn costs_of(&self, costs: &LoadCosts) -> Option<Costs> {
        if !costs.is_known(self.always_drafts) {
            return None;
        }
        let (row, drafting) = self.prices();
        let fixed = costs.draft.fixed() + costs.verify.fixed() + costs.verify.slope() + row;
        Some(Costs {
            fixed,
            per_token: costs.draft.slope() + drafting + (costs.verify.slope() + row) * self.width,
            alone: if self.always_drafts {
                fixed
            } else {
                costs.alone.fixed() + row
            },
        })
    }

    /// Tokens of the target alone, of all sessions, after a try in vain. Tries cost [`TRY_SHARE`] of them at most: each
    /// costs what its rounds took beyond what the target alone takes for what they emit.
    fn pause_after(&self, at: &LoadCosts, known: Costs, gain: f64) -> u64 {
        let len = self.decision.len.max(1);
        let lost = f64::from(TRY) * known.round(len) * (1.0 - gain).max(0.0) / known.alone;
        let sessions = self.verifier.sessions().min(PAUSED_FOR);
        let second = sessions / at.alone.fixed().max(f64::MIN_POSITIVE);
        let tokens = PAUSE * second * f64::from(1 << at.failures.min(DOUBLED));
        let longest = PAUSE * second * f64::from(1 << DOUBLED);
        let tokens = tokens.max((lost / TRY_SHARE).min(longest));
        tokens.clamp(REST.0, REST.1) as u64
    }

    fn at_load<T>(&self, action: impl FnOnce(&mut LoadCosts) -> T) -> T {
        self.ledger.at(self.verifier.load_class(), action)
    }
}

#[cfg(test)]
mod tests;
