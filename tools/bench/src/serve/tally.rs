//! What the answers of many requests add up to.

use std::collections::BTreeMap;
use std::time::Duration;

use super::answer::Answer;
use super::drafts::DraftCounts;
use super::load_point::Outcome;
use super::slo::Slo;
use super::spread::Spread;

/// Sums over requests, and how their times spread, in milliseconds.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) completed: usize,
    pub(super) failed: usize,
    /// Completed requests within the limits.
    pub(super) within: usize,
    /// Tokens of prompts; none where no answer tells its usage.
    pub(super) input_tokens: Option<f64>,
    pub(super) output_tokens: f64,
    /// Answers without usage, whose tokens are counted as events.
    pub(super) without_usage: usize,
    pub(super) events: f64,
    /// Seconds of all requests together, each from its sending to its end.
    pub(super) request_seconds: f64,
    /// Drafts of the answers that tell them; none if none does.
    pub(super) drafts: Option<DraftCounts>,
    pub(super) ttft: Option<Spread>,
    pub(super) tpot: Option<Spread>,
    pub(super) gaps: Option<Spread>,
    pub(super) e2e: Option<Spread>,
}

impl Tally {
    /// Adds up `outcomes`; `slo` limits what counts as within.
    pub(super) fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>, slo: Slo) -> Self {
        let (mut answers, mut failed) = (Vec::new(), 0);
        for outcome in outcomes {
            match &outcome.answer {
                Ok(answer) => answers.push(answer),
                Err(_) => failed += 1,
            }
        }
        let sum = |of: &dyn Fn(&Answer) -> f64| -> f64 { answers.iter().map(|it| of(it)).sum() };
        let usages = answers.iter().filter_map(|answer| answer.usage());
        let inputs = usages.map(|usage| f64::from(usage.prompt));
        let drafts = answers.iter().filter_map(|answer| answer.drafts);
        Self {
            completed: answers.len(),
            failed,
            within: answers.iter().filter(|answer| slo.is_met(answer)).count(),
            input_tokens: inputs.reduce(|a, b| a + b),
            output_tokens: sum(&|answer| f64::from(answer.output_tokens())),
            without_usage: answers.iter().filter(|it| it.usage().is_none()).count(),
            events: sum(&|answer| f64::from(answer.events)),
            request_seconds: sum(&|answer| answer.end.as_secs_f64()),
            drafts: drafts.reduce(|a, b| a + b),
            ttft: spread(answers.iter().filter_map(|answer| answer.first)),
            tpot: spread(answers.iter().filter_map(|it| it.time_per_output_token())),
            gaps: spread(
                answers
                    .iter()
                    .flat_map(|answer| answer.gaps.iter().copied()),
            ),
            e2e: spread(answers.iter().map(|answer| answer.end)),
        }
    }

    /// Returns the output tokens that an event brings on average.
    pub(super) fn tokens_per_event(&self) -> Option<f64> {
        (self.events > 0.0).then(|| self.output_tokens / self.events)
    }
}

fn spread(times: impl Iterator<Item = Duration>) -> Option<Spread> {
    Spread::of(times.map(|time| time.as_secs_f64() * 1e3).collect())
}

/// Returns how many requests failed for each reason, and what was said of the first of them.
pub(super) fn failures(outcomes: &[Outcome]) -> BTreeMap<String, (usize, String)> {
    let mut reasons = BTreeMap::new();
    for failure in outcomes
        .iter()
        .filter_map(|outcome| outcome.answer.as_ref().err())
    {
        let first = || (0, failure.to_string());
        reasons.entry(failure.reason()).or_insert_with(first).0 += 1;
    }
    reasons
}
