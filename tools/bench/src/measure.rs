//! One request, by a method and its setting.

use client::Client;
use outrider::measure::RequestTotals;
use wire::v1::{Finished, RoundReport, SpeculationStatistics, Timing};

use super::report::{ReportField, number};
use super::request::RequestForm;
use super::spec::MeasuredMethod;

/// How a request is made.
#[derive(Clone, Debug)]
pub(crate) struct RequestSetting {
    pub(crate) method: MeasuredMethod,
    pub(crate) form: RequestForm,
    pub(crate) temperature: f32,
    /// Draft tokens a round; without it as the method says.
    pub(crate) draft_len: Option<u32>,
    pub(crate) max_tokens: u32,
}

/// An output and what it took.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasuredAnswer {
    /// The text of the output.
    pub(crate) text: String,
    /// Its tokens, an end token included. Shape `(tokens,)`.
    pub(crate) token_ids: Vec<u32>,
    /// What it took.
    pub(crate) measured: Measured,
}

/// What one or several requests took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Tokens, times and forwards of the target model.
    pub(crate) totals: RequestTotals,
    /// Rounds in which a block was verified.
    pub(crate) rounds: f64,
    /// Draft tokens not emitted.
    pub(crate) discarded: f64,
    /// Forwards of each draft model, the largest first.
    pub(crate) draft_forwards: Vec<f64>,
    /// Rounds asked of the peers, whether drafted or not.
    pub(crate) requested: f64,
    /// Bytes of the messages of these rounds.
    pub(crate) wire_bytes: f64,
    /// Output tokens of the requests that can defer, and how many of them were deferred.
    pub(crate) deferrable: f64,
    /// See [`deferrable`](Self::deferrable).
    pub(crate) deferred: f64,
    /// Verified draft tokens of the requests that refuse some, and how many of them were refused, if all had been tested as
    /// often.
    pub(crate) refusable: f64,
    /// See [`refusable`](Self::refusable).
    pub(crate) refused: f64,
    /// Blocks by their draft tokens' positions: that had one there, and whose was accepted.
    pub(crate) positions: Vec<[f64; 2]>,
    /// Where the time of its rounds went.
    pub(crate) times: RoundTimes,
}

impl Measured {
    fn of(finished: &Finished, times: RoundTimes) -> Self {
        let totals = RequestTotals::of(finished);
        let speculation = finished.speculation.clone().unwrap_or_default();
        let (deferral, rejection) = (speculation.deferral_rate, speculation.rejection_rate);
        let forwards = speculation.draft_forwards_by_model.iter();
        Self {
            rounds: f64::from(speculation.num_spec_steps),
            discarded: f64::from(speculation.discarded),
            draft_forwards: forwards.map(|&forwards| f64::from(forwards)).collect(),
            requested: speculation.rounds as f64,
            wire_bytes: speculation.wire_bytes_per_round * speculation.rounds as f64,
            deferrable: deferral.map_or(0.0, |_| totals.tokens),
            deferred: deferral.map_or(0.0, |rate| rate * totals.tokens),
            refusable: rejection.map_or(0.0, |_| totals.drafted),
            refused: rejection.map_or(0.0, |rate| rate * totals.drafted),
            positions: positions(&speculation),
            times,
            totals,
        }
    }

    /// Adds what another request took.
    pub(crate) fn add(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.rounds += other.rounds;
        self.discarded += other.discarded;
        let models = self.draft_forwards.len().max(other.draft_forwards.len());
        self.draft_forwards = (0..models)
            .map(|model| self.draft_forwards_of(model) + other.draft_forwards_of(model))
            .collect();
        self.requested += other.requested;
        self.wire_bytes += other.wire_bytes;
        self.deferrable += other.deferrable;
        self.deferred += other.deferred;
        self.refusable += other.refusable;
        self.refused += other.refused;
        let longest = self.positions.len().max(other.positions.len());
        self.positions.resize(longest, [0.0; 2]);
        for (sums, more) in self.positions.iter_mut().zip(&other.positions) {
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum += more;
            }
        }
        self.times.add(&other.times);
    }

    /// Returns the forwards of a draft model, 0 the largest.
    pub(crate) fn draft_forwards_of(&self, model: usize) -> f64 {
        self.draft_forwards.get(model).copied().unwrap_or_default()
    }

    /// Returns `1 + accepted / rounds`; none if no block was verified.
    pub(crate) fn mean_acceptance_length(&self) -> Option<f64> {
        ratio(self.totals.accepted, self.rounds).map(|accepted| 1.0 + accepted)
    }

    /// Returns the mean deferral over output tokens; none where nothing can defer.
    pub(crate) fn deferral_rate(&self) -> Option<f64> {
        ratio(self.deferred, self.deferrable)
    }

    /// Returns the mean share of draft tokens refused of those tested; none where nothing is tested.
    pub(crate) fn rejection_rate(&self) -> Option<f64> {
        ratio(self.refused, self.refusable)
    }

    /// Returns the bytes between coordinator and peers for each round; none without any.
    pub(crate) fn wire_bytes_per_round(&self) -> Option<f64> {
        ratio(self.wire_bytes, self.requested)
    }
}

/// Returns how many blocks had a draft token at each position, and of how many it was accepted.
fn positions(speculation: &SpeculationStatistics) -> Vec<[f64; 2]> {
    let blocks = (speculation.per_step_drafted.iter()).zip(&speculation.per_step_accepted);
    let longest = speculation.per_step_drafted.iter().max();
    let mut positions = vec![[0.0; 2]; longest.map_or(0, |&longest| longest as usize)];
    for (&drafted, &accepted) in blocks {
        for (index, [had, kept]) in positions.iter_mut().enumerate() {
            *had += f64::from(u8::from(index < drafted as usize));
            *kept += f64::from(u8::from(index < accepted as usize));
        }
    }
    positions
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Sums over rounds of the time in each phase, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTimes {
    /// Rounds.
    pub(crate) counted: f64,
    /// In forwards of draft models.
    pub(crate) draft_forward: f64,
    /// In the drafter, outside of forwards.
    pub(crate) draft_rest: f64,
    /// In forwards of the target model.
    pub(crate) verify_forward: f64,
    /// In the verifier, outside of forwards.
    pub(crate) verify_rest: f64,
    /// Between the services.
    pub(crate) wire: f64,
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

/// Runs one request and measures it.
///
/// # Errors
/// As [`outrider::measure::measure`].
pub(crate) async fn measure(
    client: &Client,
    setting: &RequestSetting,
    prompt: &str,
    seed: u64,
) -> anyhow::Result<MeasuredAnswer> {
    let (max_tokens, temperature) = (setting.max_tokens, setting.temperature);
    let mut request = setting.form.request(prompt, max_tokens, temperature, seed);
    setting.method.apply_with(setting.draft_len, &mut request);
    let answer = outrider::measure::measure(client, &setting.method, request).await?;
    let mut times = RoundTimes::default();
    // The first round holds the prefill and the opening of the streams.
    for round in answer.rounds.iter().filter(|round| round.round > 1) {
        times.add(&RoundTimes::of(round));
    }
    Ok(MeasuredAnswer {
        text: answer.text,
        token_ids: answer.token_ids,
        measured: Measured::of(&answer.finished, times),
    })
}

/// Where the time of a round went, in milliseconds; nothing where no round was counted.
pub(crate) fn round_times(times: &RoundTimes) -> [ReportField; 5] {
    let RoundTimes { counted, .. } = *times;
    let mean = |key, ms: f64| number(key, (counted > 0.0).then(|| ms / counted), 3);
    [
        mean("draft_forward_ms", times.draft_forward),
        mean("drafter_rest_ms", times.draft_rest),
        mean("verify_forward_ms", times.verify_forward),
        mean("verifier_rest_ms", times.verify_rest),
        mean("wire_ms", times.wire),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_requests_weigh_their_tokens() {
        let figures = |tokens, target_forwards, deferral_rate, wire_bytes_per_round| {
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
            let finished = Finished {
                speculation: Some(speculation),
                usage: Some(wire::v1::Usage {
                    completion_tokens: tokens,
                    ..Default::default()
                }),
                ..Default::default()
            };
            Measured::of(&finished, RoundTimes::default())
        };
        let mut sum = figures(30, 10, Some(0.5), 10.0);
        sum.add(&figures(10, 10, Some(0.1), 6.0));
        assert_eq!(sum.totals.target_calls_per_token(), 0.5);
        assert_eq!(sum.deferral_rate(), Some(0.4));
        assert_eq!(sum.wire_bytes_per_round(), Some(8.0));
        assert_eq!(sum.mean_acceptance_length(), Some(2.0));
        assert_eq!(sum.totals.acceptance_rate(), Some(0.5));
        let none = figures(5, 0, None, 9.0);
        assert_eq!(
            (none.deferral_rate(), none.totals.acceptance_rate()),
            (None, None)
        );
        assert_eq!(none.wire_bytes_per_round(), None);
    }
}
