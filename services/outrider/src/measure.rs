//! One request, measured.

use std::fmt::Display;

use anyhow::{anyhow, ensure};
use client::{Client, Policy};
use wire::v1::generate_request::Prompt;
use wire::v1::{
    Finished, GenerateRequest, RoundReport, SamplingParams, SpeculationStatistics, Timing,
};

/// The method every other one is compared with.
pub const BASELINE: &str = "target-only";

/// An output and what it took.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The text of the output.
    pub text: String,
    /// What it took.
    pub measured: Measured,
}

/// What one or several requests took.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Output tokens.
    pub tokens: f64,
    /// From the request to its end, prefill included.
    pub total_ms: f64,
    /// From the request to its first token, added up.
    pub first_token_ms: f64,
    /// Rounds in which a block was verified.
    pub rounds: f64,
    /// Draft tokens accepted.
    pub accepted: f64,
    /// Draft tokens verified.
    pub drafted: f64,
    /// Draft tokens not emitted.
    pub discarded: f64,
    /// Forwards of each draft model, the largest first.
    pub draft_forwards: Vec<f64>,
    /// Forwards of the target model.
    pub target_forwards: f64,
    /// Rounds asked of the peers, whether drafted or not.
    pub requested: f64,
    /// Bytes of the messages of these rounds.
    pub wire_bytes: f64,
    /// Output tokens of the requests that can defer, and how many of them were deferred.
    pub deferrable: f64,
    /// See [`deferrable`](Self::deferrable).
    pub deferred: f64,
    /// Where the time of its rounds went.
    pub times: RoundTimes,
}

impl Measured {
    fn of(finished: &Finished, speculation: &SpeculationStatistics, times: RoundTimes) -> Self {
        let tokens = f64::from(finished.usage.unwrap_or_default().completion_tokens);
        let deferral = speculation.deferral_rate;
        let timing = finished.timing.unwrap_or_default();
        Self {
            tokens,
            total_ms: timing.total_ms,
            first_token_ms: timing.time_to_first_token_ms,
            rounds: f64::from(speculation.num_spec_steps),
            accepted: f64::from(speculation.num_accepted_draft_tokens),
            drafted: f64::from(speculation.num_draft_tokens),
            discarded: f64::from(speculation.discarded),
            draft_forwards: speculation
                .draft_forwards_by_model
                .iter()
                .map(|&forwards| f64::from(forwards))
                .collect(),
            target_forwards: f64::from(speculation.target_forwards),
            requested: speculation.rounds as f64,
            wire_bytes: speculation.wire_bytes_per_round * speculation.rounds as f64,
            deferrable: deferral.map_or(0.0, |_| tokens),
            deferred: deferral.map_or(0.0, |rate| rate * tokens),
            times,
        }
    }

    /// Adds what another request took.
    pub fn add(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.total_ms += other.total_ms;
        self.first_token_ms += other.first_token_ms;
        self.rounds += other.rounds;
        self.accepted += other.accepted;
        self.drafted += other.drafted;
        self.discarded += other.discarded;
        self.target_forwards += other.target_forwards;
        let models = self.draft_forwards.len().max(other.draft_forwards.len());
        self.draft_forwards = (0..models)
            .map(|model| self.draft_forwards_of(model) + other.draft_forwards_of(model))
            .collect();
        self.requested += other.requested;
        self.wire_bytes += other.wire_bytes;
        self.deferrable += other.deferrable;
        self.deferred += other.deferred;
        self.times.add(&other.times);
    }

    /// Forwards of a draft model, 0 the largest.
    pub fn draft_forwards_of(&self, model: usize) -> f64 {
        self.draft_forwards.get(model).copied().unwrap_or_default()
    }

    /// Output tokens by all time.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens / self.total_ms.max(1e-6) * 1e3
    }

    /// Forwards of the target model over output tokens.
    pub fn target_calls_per_token(&self) -> f64 {
        self.target_forwards / self.tokens.max(1.0)
    }

    /// `1 + accepted / rounds`; none if no block was verified.
    pub fn mean_acceptance_length(&self) -> Option<f64> {
        ratio(self.accepted, self.rounds).map(|accepted| 1.0 + accepted)
    }

    /// Accepted draft tokens over verified ones; none if none was verified.
    pub fn acceptance_rate(&self) -> Option<f64> {
        ratio(self.accepted, self.drafted)
    }

    /// Mean deferral over output tokens; none where nothing can defer.
    pub fn deferral_rate(&self) -> Option<f64> {
        ratio(self.deferred, self.deferrable)
    }

    /// Bytes between coordinator and peers for each round; none without any.
    pub fn wire_bytes_per_round(&self) -> Option<f64> {
        ratio(self.wire_bytes, self.requested)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The request for an answer of so many tokens to `prompt`, by the default method.
pub fn request(prompt: &str, max_tokens: u32, temperature: f32, seed: u64) -> GenerateRequest {
    GenerateRequest {
        prompt: Some(Prompt::Text(prompt.to_owned())),
        max_tokens: Some(max_tokens),
        sampling: Some(SamplingParams {
            temperature: Some(temperature),
            ..Default::default()
        }),
        seed: Some(seed),
        ..Default::default()
    }
}

/// Runs one request, by a method called so, and measures it.
///
/// # Errors
/// If it is refused or fails, or goes on without its drafter: a benchmark of failures says nothing.
pub async fn measure(
    client: &Client,
    method: &impl Display,
    request: GenerateRequest,
) -> anyhow::Result<Answer> {
    let request = GenerateRequest {
        report_rounds: true,
        ..request
    };
    // Waits and retries would count as the method's own time.
    let client = client.clone().with_policy(Policy::NONE);
    let answer = async { client.generate(request).await?.collect().await };
    let answer = answer.await.map_err(|error| anyhow!("{method}: {error}"))?;
    let mut times = RoundTimes::default();
    // The first round holds the prefill and the opening of the streams.
    for round in answer.rounds.iter().filter(|round| round.round > 1) {
        times.add(&RoundTimes::of(round));
    }
    let speculation = answer.finished.speculation.clone().unwrap_or_default();
    ensure!(
        speculation.fallbacks.is_empty(),
        "{method}: the drafter was lost"
    );
    Ok(Answer {
        text: answer.text,
        measured: Measured::of(&answer.finished, &speculation, times),
    })
}

/// Sums over rounds of the time in each phase, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTimes {
    /// Rounds.
    pub counted: f64,
    /// In forwards of draft models.
    pub draft_forward: f64,
    /// In the drafter, outside of forwards.
    pub draft_rest: f64,
    /// In forwards of the target model.
    pub verify_forward: f64,
    /// In the verifier, outside of forwards.
    pub verify_rest: f64,
    /// Between the services.
    pub wire: f64,
}

impl RoundTimes {
    fn add(&mut self, other: &Self) {
        self.counted += other.counted;
        self.draft_forward += other.draft_forward;
        self.draft_rest += other.draft_rest;
        self.verify_forward += other.verify_forward;
        self.verify_rest += other.verify_rest;
        self.wire += other.wire;
    }

    fn of(round: &RoundReport) -> Self {
        let ms = |us: u32| f64::from(us) / 1e3;
        let (drafter, verifier) = (
            round.drafter.unwrap_or_default(),
            round.verifier.unwrap_or_default(),
        );
        let inside = |timing: &Timing| ms(timing.total_us);
        Self {
            counted: 1.0,
            draft_forward: ms(drafter.forward_us),
            draft_rest: inside(&drafter) - ms(drafter.forward_us),
            verify_forward: ms(verifier.forward_us),
            verify_rest: inside(&verifier) - ms(verifier.forward_us),
            wire: ms(round.draft_us) - inside(&drafter) + ms(round.verify_us) - inside(&verifier),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_requests_weigh_their_tokens() {
        let figures = |tokens, target_forwards, deferral_rate, wire_bytes_per_round| {
            let finished = Finished {
                usage: Some(wire::v1::Usage {
                    completion_tokens: tokens,
                    ..Default::default()
                }),
                ..Default::default()
            };
            let speculation = SpeculationStatistics {
                target_forwards,
                deferral_rate,
                wire_bytes_per_round,
                rounds: target_forwards.into(),
                num_spec_steps: target_forwards,
                num_draft_tokens: 2 * target_forwards,
                num_accepted_draft_tokens: target_forwards,
                ..Default::default()
            };
            Measured::of(&finished, &speculation, RoundTimes::default())
        };
        let mut sum = figures(30, 10, Some(0.5), 10.0);
        sum.add(&figures(10, 10, Some(0.1), 6.0));
        assert_eq!(sum.target_calls_per_token(), 0.5);
        assert_eq!(sum.deferral_rate(), Some(0.4));
        assert_eq!(sum.wire_bytes_per_round(), Some(8.0));
        assert_eq!(sum.mean_acceptance_length(), Some(2.0));
        assert_eq!(sum.acceptance_rate(), Some(0.5));
        let none = figures(5, 0, None, 9.0);
        assert_eq!((none.deferral_rate(), none.acceptance_rate()), (None, None));
        assert_eq!(none.wire_bytes_per_round(), None);
    }
}
