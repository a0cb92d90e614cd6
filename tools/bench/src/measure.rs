//! One request, by a method and its setting.

pub(crate) use outrider::measure::{Answer, Measured};

use client::Client;
use outrider::measure::RoundTimes;
use wire::v1::GenerateRequest;

use super::report::{Field, number};
use super::spec::MethodSpec;

/// How a request is made.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) method: MethodSpec,
    pub(crate) temperature: f32,
    /// Draft tokens a round; without it as the method says.
    pub(crate) draft_len: Option<u32>,
    pub(crate) max_tokens: u32,
    /// The output ends before the first of these texts.
    pub(crate) stop: Vec<String>,
}

/// Runs one request and measures it.
///
/// # Errors
/// As [`outrider::measure::measure`].
pub(crate) async fn measure(
    client: &Client,
    setting: &Setting,
    prompt: &str,
    seed: u64,
) -> anyhow::Result<Answer> {
    let mut request = GenerateRequest {
        stop: setting.stop.clone(),
        ..outrider::measure::request(prompt, setting.max_tokens, setting.temperature, seed)
    };
    setting.method.apply_with(setting.draft_len, &mut request);
    outrider::measure::measure(client, &setting.method, request).await
}

/// Where the time of a round went, in milliseconds; nothing where no round was counted.
pub(crate) fn round_times(times: &RoundTimes) -> [Field; 5] {
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
