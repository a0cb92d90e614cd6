//! What bans, mask, bias and penalties make of a part of a row.

use std::collections::HashSet;

use super::partial_row::PartialRow;
use super::refusal::RowRefusal;
use crate::TokenId;
use crate::history::History;
use crate::sampling::SamplingParams;

/// A part of a row after everything that changes single log probabilities.
#[derive(Clone, Debug)]
pub(super) struct Adjusted {
    /// Tokens that may be drawn, the largest value first, the lowest ids among equals first.
    pub(super) known: Vec<(TokenId, f64)>,
    /// What is left of the unknown tokens.
    pub(super) unknown: Unknown,
}

/// The unknown tokens that may be drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown {
    /// Most tokens there are; with none, all that may be drawn are known.
    pub(super) count: usize,
    /// No value is larger.
    pub(super) ceiling: f64,
    /// The least and the most mass that all unknown tokens have together before anything is changed.
    pub(super) mass: (f64, f64),
    /// Most tokens among them that bans, mask, bias or penalties take mass away from.
    pub(super) lowered: usize,
}

impl Adjusted {
    /// Changes the log probabilities of `row` as the pipeline changes logits.
    ///
    /// Whatever is only lowered stays below its bound, so of the tokens that are raised, and only of these, the row
    /// must hold all.
    pub(super) fn of(
        row: &PartialRow,
        params: &SamplingParams,
        history: &History,
        position: u32,
    ) -> Result<Self, RowRefusal> {
        if params.repetition_penalty != 1.0 {
            return Err(RowRefusal::RepetitionPenalty);
        }
        let mut known: Vec<(TokenId, f64)> = row
            .known()
            .iter()
            .map(|likely| (likely.token, likely.logprob))
            .collect();
        let mut unknown = Unknown {
            count: row.unknown(),
            ceiling: row.ceiling(),
            mass: row.unknown_mass(),
            lowered: 0,
        };
        let changes = Changes::of(params, history, position);
        if changes.are_none() {
            known.retain(|&(_, value)| value > f64::NEG_INFINITY);
            return Ok(Self { known, unknown });
        }
        known.sort_unstable_by_key(|&(token, _)| token);
        changes.apply(&mut known, &mut unknown)?;
        known.retain(|&(_, value)| value > f64::NEG_INFINITY);
        known.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(Self { known, unknown })
    }

    /// Whether nothing is unknown that may be drawn.
    pub(super) fn is_whole(&self) -> bool {
        self.unknown.count == 0 || self.unknown.ceiling == f64::NEG_INFINITY
    }

    /// The largest value that any token may have.
    pub(super) fn largest(&self) -> f64 {
        let known = self.known.first().map_or(f64::NEG_INFINITY, |best| best.1);
        if self.is_whole() {
            known
        } else {
            known.max(self.unknown.ceiling)
        }
    }

    /// How many of the known tokens come before every unknown one.
    pub(super) fn ahead(&self) -> usize {
        if self.is_whole() {
            return self.known.len();
        }
        let ceiling = self.unknown.ceiling;
        self.known.partition_point(|&(_, value)| value > ceiling)
    }
}

/// What changes single log probabilities at one position.
struct Changes<'a> {
    params: &'a SamplingParams,
    history: &'a History,
    banned: [&'a [TokenId]; 2],
    /// If not empty, all that may be drawn.
    allowed: HashSet<TokenId>,
}

impl<'a> Changes<'a> {
    fn of(params: &'a SamplingParams, history: &'a History, position: u32) -> Self {
        let ends: &[TokenId] = if position < params.min_tokens {
            &params.end_tokens
        } else {
            &[]
        };
        Self {
            params,
            history,
            banned: [&params.banned_tokens, ends],
            allowed: params.allowed_tokens.iter().copied().collect(),
        }
    }

    fn are_none(&self) -> bool {
        self.banned.iter().all(|banned| banned.is_empty())
            && self.allowed.is_empty()
            && self.params.logit_bias.is_empty()
            && !self.params.uses_history()
    }

    fn may_draw(&self, token: TokenId) -> bool {
        self.allowed.is_empty() || self.allowed.contains(&token)
    }

    /// Changes `known`, which is in the order of ids, in the pipeline's order of operations.
    fn apply(&self, known: &mut [(TokenId, f64)], unknown: &mut Unknown) -> Result<(), RowRefusal> {
        let find = |known: &[(TokenId, f64)], token| {
            known.binary_search_by_key(&token, |&(token, _)| token).ok()
        };
        for &token in self.banned.into_iter().flatten() {
            match find(known, token) {
                Some(at) => known[at].1 = f64::NEG_INFINITY,
                None => unknown.lowered += 1,
            }
        }
        if !self.allowed.is_empty() {
            for (token, value) in known.iter_mut() {
                if !self.may_draw(*token) {
                    *value = f64::NEG_INFINITY;
                }
            }
            let allowed = self.allowed.iter();
            let left = allowed.filter(|&&token| find(known, token).is_none());
            unknown.count = left.count().min(unknown.count);
            // Nothing is known of how the mass is shared between these and the others.
            unknown.mass.0 = 0.0;
        }
        for &(token, bias) in &self.params.logit_bias {
            match find(known, token) {
                Some(at) => known[at].1 += f64::from(bias),
                None if bias > 0.0 && self.may_draw(token) => {
                    return Err(RowRefusal::NotKnown(token));
                }
                None => unknown.lowered += 1,
            }
        }
        let presence = f64::from(self.params.presence_penalty);
        let frequency = f64::from(self.params.frequency_penalty);
        for (token, seen) in self.history.seen() {
            if seen.in_output == 0 {
                continue;
            }
            match find(known, token) {
                Some(at) => {
                    known[at].1 -= presence;
                    known[at].1 -= frequency * f64::from(seen.in_output);
                }
                None if (presence < 0.0 || frequency < 0.0) && self.may_draw(token) => {
                    return Err(RowRefusal::NotKnown(token));
                }
                None => unknown.lowered += 1,
            }
        }
        Ok(())
    }
}
