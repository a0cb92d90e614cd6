//! One request, measured.

use anyhow::{Context, anyhow, bail};
use tonic::transport::Channel;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::generate_request::Prompt;
use wire::v1::generate_response::Part;
use wire::v1::{FinishReason, GenerateRequest, RoundReport, SamplingParams, Timing};

/// How a request is made.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) method: String,
    pub(super) temperature: f32,
    pub(super) draft_len: u32,
    pub(super) max_tokens: u32,
}

/// What one or several requests took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) tokens: f64,
    /// From the request to its end, prefill included.
    pub(super) total_ms: f64,
    pub(super) rounds: f64,
    pub(super) accepted: f64,
    pub(super) drafted: f64,
    pub(super) times: RoundTimes,
}

/// Where the time of rounds went, in milliseconds, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTimes {
    pub(super) counted: f64,
    pub(super) draft_forward: f64,
    pub(super) draft_rest: f64,
    pub(super) verify_forward: f64,
    pub(super) verify_rest: f64,
    pub(super) wire: f64,
}

impl Measured {
    pub(super) fn add(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.total_ms += other.total_ms;
        self.rounds += other.rounds;
        self.accepted += other.accepted;
        self.drafted += other.drafted;
        self.times.add(&other.times);
    }

    pub(super) fn tokens_per_second(&self) -> f64 {
        self.tokens / self.total_ms.max(1e-6) * 1e3
    }

    pub(super) fn mean_acceptance_length(&self) -> f64 {
        1.0 + self.accepted / self.rounds.max(1.0)
    }
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
/// If it is refused or fails: a benchmark of failures says nothing.
pub(super) async fn measure(
    client: &mut CoordinatorClient<Channel>,
    setting: &Setting,
    prompt: &str,
    seed: u64,
) -> anyhow::Result<Measured> {
    let request = GenerateRequest {
        prompt: Some(Prompt::Text(prompt.to_owned())),
        max_tokens: Some(setting.max_tokens),
        sampling: Some(SamplingParams {
            temperature: Some(setting.temperature),
            ..Default::default()
        }),
        seed: Some(seed),
        method: setting.method.clone(),
        draft_len: Some(setting.draft_len),
        report_rounds: true,
        ..Default::default()
    };
    let mut parts = client
        .generate(request)
        .await
        .map_err(|status| anyhow!("{}", status.message().to_owned()))?
        .into_inner();
    let mut measured = Measured::default();
    while let Some(message) = parts.message().await? {
        match message.part {
            // The first round holds the prefill and the opening of the streams.
            Some(Part::Round(round)) if round.round > 1 => {
                measured.times.add(&RoundTimes::of(&round));
            }
            Some(Part::Finished(finished)) => {
                if finished.reason() == FinishReason::Error {
                    bail!("{}: {}", setting.method, finished.error);
                }
                let usage = finished.usage.unwrap_or_default();
                let timing = finished.timing.unwrap_or_default();
                let speculation = finished.speculation.unwrap_or_default();
                if !speculation.fallbacks.is_empty() {
                    bail!("{}: the drafter was lost", setting.method);
                }
                measured.tokens = f64::from(usage.completion_tokens);
                measured.total_ms = timing.total_ms;
                measured.rounds = f64::from(speculation.num_spec_steps);
                measured.accepted = f64::from(speculation.num_accepted_draft_tokens);
                measured.drafted = f64::from(speculation.num_draft_tokens);
                return Ok(measured);
            }
            _ => {}
        }
    }
    Err(anyhow::anyhow!("the answer has no end")).context(setting.method.clone())
}
