//! One request, by a method and its setting.

pub(crate) use outrider::measure::{Answer, Measured};

use outrider::connect::Coordinator;
use wire::v1::GenerateRequest;

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
    client: &mut Coordinator,
    setting: &Setting,
    prompt: &str,
    seed: u64,
) -> anyhow::Result<Answer> {
    let mut request = GenerateRequest {
        draft_len: setting.draft_len,
        stop: setting.stop.clone(),
        ..outrider::measure::request(prompt, setting.max_tokens, setting.temperature, seed)
    };
    setting.method.apply(&mut request)?;
    outrider::measure::measure(client, &setting.method, request).await
}
