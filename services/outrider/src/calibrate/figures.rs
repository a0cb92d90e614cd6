//! What was measured.

use anyhow::{Context, ensure};
use client::CollectedAnswer;
use wire::describe::TRANSLATED;
use wire::v1::{RoundReport, ServedModel};

use super::forecast::{Costs, Line};

/// The pair that is measured.
#[derive(Clone, Debug)]
pub(super) struct MeasuredPair {
    pub(super) target: String,
    pub(super) draft: String,
    /// Whether the draft model reads another vocabulary.
    pub(super) is_translated: bool,
}

impl MeasuredPair {
    /// Returns that of `served`.
    ///
    /// # Errors
    /// If it has no draft model.
    pub(super) fn of(served: Option<&ServedModel>) -> anyhow::Result<Self> {
        let target = served.and_then(|it| it.verifier.as_ref());
        let target = target.context("no verifier answers")?;
        let draft = served.and_then(|it| it.drafter.as_ref()).context(
            "there is no draft model to be measured: name one by --draft-model, or a coordinator with a drafter that fits its target",
        )?;
        ensure!(
            wire::describe::has_model(draft),
            "the drafter '{}' has no draft model, it copies from the text",
            draft.model
        );
        Ok(Self {
            target: target.model.clone(),
            draft: draft.model.clone(),
            is_translated: draft.features.iter().any(|feature| feature == TRANSLATED),
        })
    }
}

/// Rounds that were asked for one length, and what they took, summed up; times in milliseconds.
#[derive(Clone, Debug, Default)]
struct LengthFigures {
    rounds: f64,
    /// How many accepted each draft token, and all before. One that was not drafted was not.
    survived: Vec<f64>,
    draft_ms: f64,
    verify_ms: f64,
    draft_forward_ms: f64,
    verify_forward_ms: f64,
}

/// What was measured of some draft lengths.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    lengths: std::collections::BTreeMap<u32, LengthFigures>,
    /// Tokens after the first of each answer, and what they took: of the target alone, and by all other requests.
    alone: (f64, f64),
    all: (f64, f64),
    /// Rounds of all, and what of their time was no peer's.
    rounds: f64,
    beside_ms: f64,
}

impl Figures {
    /// Adds an answer with so many draft tokens a round.
    pub(super) fn add(&mut self, draft_len: u32, answer: &CollectedAnswer) {
        let finished = &answer.finished;
        let timing = finished.timing.unwrap_or_default();
        let tokens = finished.usage.unwrap_or_default().completion_tokens;
        // The first tokens wait for the prompt.
        let first = answer.rounds.first().map_or(1, |round| round.emitted);
        let after_first = f64::from(tokens.saturating_sub(first));
        let ms = timing.total_ms - timing.time_to_first_token_ms;
        if after_first == 0.0 {
            return;
        }
        self.all.0 += after_first;
        self.all.1 += ms;
        if draft_len == 0 {
            self.alone.0 += after_first;
            self.alone.1 += ms;
            return;
        }
        let rounds = answer.rounds.get(1..).unwrap_or_default();
        let in_peers: f64 = rounds
            .iter()
            .map(|it| f64::from(it.draft_us + it.verify_us) / 1e3)
            .sum();
        self.rounds += rounds.len() as f64;
        self.beside_ms += (ms - in_peers).max(0.0);
        // The last round is cut by the end of the answer.
        let whole = rounds.len().saturating_sub(1);
        let figures = self.lengths.entry(draft_len).or_default();
        for round in &rounds[..whole] {
            figures.add(round, draft_len);
        }
    }

    /// Returns milliseconds a token of all requests.
    pub(super) fn ms_a_token(&self) -> f64 {
        self.all.1 / self.all.0.max(1.0)
    }

    /// Returns what rounds cost and bring.
    ///
    /// # Errors
    /// If there were too few.
    pub(super) fn costs(&self) -> anyhow::Result<Costs> {
        const FEW: &str =
            "too few rounds were measured: give more prompts, or more of --max-tokens";
        ensure!(self.alone.0 > 0.0 && self.rounds > 0.0, FEW);
        let line = |of: fn(&LengthFigures) -> f64| {
            let points = self.lengths.iter().filter(|(_, it)| it.rounds > 0.0);
            let points = points.map(|(&len, it)| (f64::from(len), of(it) / it.rounds, it.rounds));
            Line::through(points.collect::<Vec<_>>().as_slice()).context(FEW)
        };
        let longest = self.lengths.last_key_value();
        let (_, longest) = longest.filter(|(_, it)| it.rounds > 0.0).context(FEW)?;
        Ok(Costs {
            alone_ms: self.alone.1 / self.alone.0,
            draft: line(|it| it.draft_ms)?,
            verify: line(|it| it.verify_ms)?,
            draft_forward: line(|it| it.draft_forward_ms)?,
            verify_forward: line(|it| it.verify_forward_ms)?,
            beside_ms: self.beside_ms / self.rounds,
            rounds: longest.rounds,
            survival: longest
                .survived
                .iter()
                .map(|it| it / longest.rounds)
                .collect(),
        })
    }
}

impl LengthFigures {
    fn add(&mut self, round: &RoundReport, draft_len: u32) {
        let forward = |timing: Option<wire::v1::Timing>| {
            f64::from(timing.unwrap_or_default().forward_us) / 1e3
        };
        self.rounds += 1.0;
        self.survived.resize(draft_len as usize, 0.0);
        for survived in self.survived.iter_mut().take(round.accepted as usize) {
            *survived += 1.0;
        }
        self.draft_ms += f64::from(round.draft_us) / 1e3;
        self.verify_ms += f64::from(round.verify_us) / 1e3;
        self.draft_forward_ms += forward(round.drafter);
        self.verify_forward_ms += forward(round.verifier);
    }
}
