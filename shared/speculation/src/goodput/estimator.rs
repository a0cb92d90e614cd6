//! What a request measures of its rounds, and the next draft length.

use std::time::Duration;

use super::ledger::{CostLedger, FIRST_REST, LoadCosts, Pages};
use super::length::{Best, RoundCosts, best_len};
use super::price::{Loads, Price};
use super::sample::AloneSample;
use super::survival::Survival;
use super::{Decision, MeasuredRound, Why};

/// Most that the length changes from one round to the next.
const STEP: u32 = 2;

/// The length of the first round.
const FIRST: u32 = 4;

/// Timed rounds of a try.
const TRY: u32 = 3;

/// Tokens emitted by rounds with drafts before the target alone is measured again, for [`FIRST_REST`] tokens. Where
/// the gain is at least [`SURE_GAIN`] there are [`SURE_TIMES`] as many.
const ALONE_EVERY: u64 = 1_024;
const SURE_GAIN: f64 = 1.5;
const SURE_TIMES: u64 = 16;

/// Longest rest, at the speed measured when it begins. If the load falls, its tokens take less time. A rest is long
/// because its end costs a round trip.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// Tokens of a rest of a session whose own acceptance is too low while that of its kind would pay: that may be chance, or
/// a part of the text.
const OWN_REST: u32 = 48;

/// Gain above 1 at which a session begins to draft, and below 1 at which it stops. Up to as much again is added by
/// the session's seed, so that sessions do not change together.
const HYSTERESIS: f64 = 0.02;

/// What a session does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum DraftingState {
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
/// the length of highest throughput, [`RoundCosts`] being sums of both. Acceptance is the session's own, for each position
/// of a draft by itself, with that of all sessions of the kind as its prior. Times are those of all sessions of the
/// kind at the same load of the verifier: draft time is fitted as fixed + slope · levels and verify time as fixed +
/// slope · (nodes + 1), round trips included, and what lies between two rounds is their mean; one round that took far longer than expected changes little. What
/// others wait comes from what the peers say of their engines ([`Price`]).
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    survival: Survival,
    ledger: CostLedger,
    loads: Loads,
    /// Whether the draft distribution is needed at every position, so that the session cannot rest.
    always_drafts: bool,
    /// How much of [`HYSTERESIS`] this session adds to it, 0 to 1.
    spread: f64,
    way: DraftingState,
    decision: Decision,
    /// Whether drafting would pay with the acceptance of the kind.
    pays_for_kind: bool,
    /// Tokens that the target decoded alone, until they are a sample.
    sample: AloneSample,
    /// Seconds that this session's timed rounds with drafts took, and that the target alone takes for the tokens they
    /// emitted.
    spent: f64,
    saved: f64,
}

impl Estimator {
    /// The estimator of a new session of the same kind: what they measure is common to both. `spread`, 0 to 1, differs
    /// between sessions; `may_rest` says whether the target may decode alone.
    #[must_use]
    pub fn begin(&self, spread: f64, may_rest: bool) -> Self {
        Self {
            ledger: self.ledger.clone(),
            loads: self.ledger.with(|pages| pages.loads),
            spread: spread.clamp(0.0, 1.0),
            always_drafts: !may_rest,
            ..Self::default()
        }
    }

    /// Takes note of the load that the drafter reports, and of whether it computes on the verifier's processors, if
    /// that is known.
    pub fn drafter_reported(&mut self, price: Price, share_processors: Option<bool>) {
        self.loads.drafter = price;
        if let Some(share) = share_processors {
            self.loads.share_processors = share;
        }
        self.publish_loads();
    }

    /// Takes note of the load that the verifier reports.
    pub fn verifier_reported(&mut self, price: Price) {
        self.loads.verifier = price;
        self.publish_loads();
    }

    fn publish_loads(&self) {
        self.ledger.with(|pages| pages.loads = self.loads);
    }

    /// Takes note of a round.
    pub fn observe(&mut self, round: MeasuredRound) {
        let emitted = round.accepted + 1;
        // Steps of the target alone say nothing of acceptance, and must not make it forgotten: drafting
        // that does not pay for want of it would begin anew after a few of them.
        let has_drafts = round.levels > 0;
        let peers = round.draft.zip(round.verify);
        let peers = peers.map(|(draft, verify)| draft + verify);
        // A longer time than both peers take is that of a client that does not read.
        let between = round.between.filter(|between| Some(*between) <= peers);
        let alone = self.ledger.with(|pages| {
            if has_drafts {
                pages.survival.observe(round.accepted, round.refused);
                pages.width = f64::from(round.nodes) / f64::from(round.levels);
            }
            let costs = pages.at(&self.loads.verifier);
            if let Some(took) = round.draft {
                let levels = f64::from(round.levels);
                costs.draft.observe(levels, took.as_secs_f64());
            }
            if let Some(took) = round.verify {
                let scored = f64::from(round.nodes) + 1.0;
                costs.verify.observe(scored, took.as_secs_f64());
            }
            if let Some(between) = between {
                costs.between.observe(0.0, between.as_secs_f64());
            }
            costs.drafted += u64::from(emitted);
            costs.alone.fixed()
        });
        if !has_drafts {
            return;
        }
        self.survival.observe(round.accepted, round.refused);
        if let Some(peers) = peers {
            self.spent += (peers + between.unwrap_or_default()).as_secs_f64();
            self.saved += alone * f64::from(emitted);
        }
        if let DraftingState::Tries(left) = &mut self.way
            && round.draft.is_some()
        {
            *left = left.saturating_sub(1);
        }
    }

    /// Takes note of `tokens` that the target decoded alone in one go, and of the time they took if it
    /// counts.
    pub fn observe_alone(&mut self, tokens: u32, took: Option<Duration>) {
        self.survival.rest(tokens);
        let verifier = self.loads.verifier;
        let sample = self.sample.add(tokens, took, &verifier);
        self.at_load(|costs| {
            costs.rested += u64::from(tokens);
            if let Some(each) = sample {
                costs.alone.observe(0.0, each);
            }
        });
    }

    /// Tokens of the next rest, at least 1.
    pub fn rest(&self) -> u32 {
        self.at_load(|costs| {
            if !costs.alone.is_known() || self.way == DraftingState::Drafts {
                return FIRST_REST as u32;
            }
            if self.pays_for_kind {
                return OWN_REST;
            }
            let tokens = LOOK_EVERY.as_secs_f64() / costs.alone.fixed().max(f64::MIN_POSITIVE);
            (tokens as u32).max(FIRST_REST as u32)
        })
    }

    /// The measured acceptance of a draft token whose predecessors were accepted, of all positions together.
    pub fn acceptance(&self) -> f64 {
        let within = |pages: &mut Pages| self.survival.of_all_within(&pages.survival);
        self.ledger.with(within)
    }

    /// Returns the throughput over that of the target alone that sessions of the kind have with their best draft length, at
    /// most `most`, at the load that the verifier reported last. None before both ways were measured.
    pub fn gain_of_kind(&self, most: u32) -> Option<f64> {
        let session = self.begin(0.0, true);
        self.ledger.with(|pages| {
            let known = session.costs_of(pages)?;
            Some(best_len(pages.survival.by_position(), known, most).gain)
        })
    }

    /// Returns what a round costs at the present load, in seconds, with the time that others wait. None before both
    /// ways were measured.
    pub fn costs(&self) -> Option<RoundCosts> {
        self.ledger.with(|pages| self.costs_of(pages))
    }

    /// Returns what was decided last, and why.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Measured throughput of this session's rounds with drafts over that of the target alone at the same load. The
    /// time that others wait is not in it. None before both were measured.
    pub fn measured_gain(&self) -> Option<f64> {
        (self.spent > 0.0 && self.saved > 0.0).then(|| self.saved / self.spent)
    }

    /// Seconds that other sequences wait for one more row at the verifier, and for one more draft token.
    pub fn prices(&self) -> (f64, f64) {
        self.loads.waits()
    }

    /// The length of the next round, at most `most`: 0 asks for [`Estimator::rest`] tokens of the target alone. The
    /// most that is left of a request is no such bound: what was tried counts for the next request too.
    pub fn decide(&mut self, most: u32) -> u32 {
        let ledger = self.ledger.clone();
        self.decision = ledger.with(|pages| {
            if self.way == DraftingState::Rests {
                // A resting session gets no report of the drafter; another session may have got one.
                self.loads.drafter = pages.loads.drafter;
            }
            self.decide_from(pages, most)
        });
        self.decision.len
    }

    fn decide_from(&mut self, pages: &mut Pages, most: u32) -> Decision {
        let decided = |len, gain, why| Decision {
            len,
            gain,
            why,
            min_survival: None,
        };
        let known = self.costs_of(pages);
        let survival = self.survival.by_position_within(&pages.survival);
        let best = known.map(|known| best_len(survival, known, most));
        let of_kind = known.map(|known| best_len(pages.survival.by_position(), known, most));
        self.pays_for_kind = of_kind.is_some_and(|best| best.gain > 1.0);
        let costs = pages.at(&self.loads.verifier);
        let (Some(known), Some(Best { len, gain })) = (known, best) else {
            let tries = matches!(self.way, DraftingState::Tries(left) if left > 0);
            let drafts = self.always_drafts || tries || self.begins_try(costs);
            let len = if drafts { FIRST.min(most) } else { 0 };
            return decided(len, None, Why::Unknown);
        };
        let (len, some) = (self.near(len, most), Some(gain));
        if matches!(self.way, DraftingState::Tries(left) if left > 0) {
            return decided(len, some, Why::Tries);
        }
        let hysteresis = HYSTERESIS * (1.0 + self.spread);
        let pays = match self.way {
            DraftingState::Drafts => gain > 1.0 - hysteresis,
            DraftingState::Rests | DraftingState::Tries(_) => gain > 1.0 + hysteresis,
        };
        if pays {
            self.way = DraftingState::Drafts;
            costs.failures = 0;
            let often = if gain < SURE_GAIN { 1 } else { SURE_TIMES };
            if costs.drafted >= ALONE_EVERY * often && !self.always_drafts {
                costs.drafted = 0;
                return decided(0, some, Why::Compares);
            }
            return Decision {
                min_survival: Some(known.min_survival(gain)),
                ..decided(len, some, Why::Pays)
            };
        }
        if matches!(self.way, DraftingState::Tries(_)) {
            let took = known.round(self.decision.len.max(1));
            let lost = f64::from(TRY) * took * (1.0 - gain).max(0.0) / known.alone;
            costs.tried_in_vain(lost, self.loads.verifier.sessions);
        }
        self.way = DraftingState::Rests;
        if self.begins_try(costs) {
            return decided(len, some, Why::Tries);
        }
        decided(0, some, Why::Rests)
    }

    /// Whether this session begins a try now.
    fn begins_try(&mut self, costs: &mut LoadCosts) -> bool {
        let begins = costs.begins_try(self.loads.verifier.sessions);
        if begins {
            self.way = DraftingState::Tries(TRY);
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

    fn costs_of(&self, pages: &mut Pages) -> Option<RoundCosts> {
        let width = pages.width;
        let costs = pages.at(&self.loads.verifier);
        if !costs.is_known(self.always_drafts) {
            return None;
        }
        let (row, drafting) = self.loads.waits();
        let peers = costs.draft.fixed() + costs.verify.fixed() + costs.verify.slope();
        let fixed = costs.between.fixed() + peers + row;
        Some(RoundCosts {
            fixed,
            per_token: costs.draft.slope() + drafting + (costs.verify.slope() + row) * width,
            alone: if self.always_drafts {
                fixed
            } else {
                costs.alone.fixed() + row
            },
        })
    }

    fn at_load<T>(&self, action: impl FnOnce(&mut LoadCosts) -> T) -> T {
        self.ledger
            .with(|pages| action(pages.at(&self.loads.verifier)))
    }
}

#[cfg(test)]
mod tests;
