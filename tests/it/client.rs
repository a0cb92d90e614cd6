//! Requests, and whole answers to them.

use prost_types::Value;
use prost_types::value::Kind;
use speculation::methods::SettingValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_types::StatusExt;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::generate_request::Prompt;
use wire::v1::generate_response::Part;
use wire::v1::{
    FinishReason, Finished, GenerateRequest, GenerateResponse, Origin, RoundReport, SamplingParams,
    SpeculationStatistics, Started, TokenLogprobs,
};

use crate::cluster::{Service, client};

/// A request for `max_tokens` tokens after `prompt`.
pub(crate) fn request(prompt: &str, max_tokens: u32) -> GenerateRequest {
    GenerateRequest {
        prompt: Some(Prompt::Text(prompt.to_owned())),
        max_tokens: Some(max_tokens),
        sampling: Some(SamplingParams::default()),
        seed: Some(42),
        ..Default::default()
    }
}

/// What is varied most.
pub(crate) trait With {
    fn method(self, method: &str) -> Self;
    fn temperature(self, temperature: f32) -> Self;
    fn draft_len(self, draft_len: u32) -> Self;
    fn seed(self, seed: u64) -> Self;
    fn ignoring_eos(self) -> Self;
    /// Sets a setting of the method, whatever it is called.
    fn with(self, name: &str, value: impl Into<SettingValue>) -> Self;
    /// The same in place.
    fn set(&mut self, name: &str, value: impl Into<SettingValue>);
}

impl With for GenerateRequest {
    fn method(self, method: &str) -> Self {
        Self {
            method: method.to_owned(),
            ..self
        }
    }

    fn temperature(mut self, temperature: f32) -> Self {
        self.sampling.get_or_insert_default().temperature = Some(temperature);
        self
    }

    fn draft_len(self, draft_len: u32) -> Self {
        self.with("draft_len", draft_len)
    }

    fn seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    fn ignoring_eos(self) -> Self {
        Self {
            ignore_eos: true,
            ..self
        }
    }

    fn with(mut self, name: &str, value: impl Into<SettingValue>) -> Self {
        self.set(name, value);
        self
    }

    fn set(&mut self, name: &str, value: impl Into<SettingValue>) {
        let kind = match value.into() {
            SettingValue::Number(number) => Kind::NumberValue(number),
            SettingValue::Flag(flag) => Kind::BoolValue(flag),
            SettingValue::Text(text) => Kind::StringValue(text.into_owned()),
        };
        let value = Value { kind: Some(kind) };
        let fields = &mut self.settings.get_or_insert_default().fields;
        fields.insert(name.to_owned(), value);
    }
}

/// A whole answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) started: Started,
    pub(crate) text: String,
    pub(crate) pieces: String,
    pub(crate) tokens: Vec<u32>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) logprobs: Vec<TokenLogprobs>,
    /// The prompt's tokens and log probabilities, if they were requested.
    pub(crate) prompt: Vec<u32>,
    pub(crate) prompt_logprobs: Vec<TokenLogprobs>,
    pub(crate) rounds: Vec<RoundReport>,
    pub(crate) finished: Finished,
}

impl Answer {
    pub(crate) fn statistics(&self) -> &SpeculationStatistics {
        self.finished.speculation.as_ref().expect("statistics")
    }

    pub(crate) fn fallbacks(&self) -> usize {
        let statistics = self.finished.speculation.as_ref();
        statistics.map_or(0, |statistics| statistics.fallbacks.len())
    }

    /// The axis or parameter called `name`.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        let found = self.finished.settings.iter().find(|set| set.name == name);
        found.map(|set| &set.value[..])
    }
}

/// Generates to the end.
///
/// # Errors
/// If the request itself is refused.
pub(crate) async fn try_generate(
    coordinator: &Service,
    request: GenerateRequest,
) -> Result<Answer, Status> {
    let parts = client(coordinator).generate(request).await?.into_inner();
    Ok(collect(parts, |_| {}).await)
}

/// Generates to the end of a request that is in order.
pub(crate) async fn generate(coordinator: &Service, request: GenerateRequest) -> Answer {
    let answer = try_generate(coordinator, request)
        .await
        .expect("a request in order");
    assert_ne!(
        answer.finished.reason(),
        FinishReason::Error,
        "{}",
        answer.finished.error
    );
    answer
}

/// The parts of the answer to a request that is in order, as they come.
pub(crate) async fn begin(
    coordinator: &Service,
    request: GenerateRequest,
) -> Streaming<GenerateResponse> {
    let parts = client(coordinator).generate(request).await;
    parts.expect("in order").into_inner()
}

/// The parts of the answer to a client that has room for a kilobyte: an answer of hundreds of tokens goes on for
/// as long as it is not read, however fast the machine is.
pub(crate) async fn begin_unread(
    coordinator: &Service,
    request: GenerateRequest,
) -> Streaming<GenerateResponse> {
    read_through(coordinator, request, 1_000).await
}

/// The same through a window of `bytes`.
pub(crate) async fn read_through(
    coordinator: &Service,
    request: GenerateRequest,
    bytes: u32,
) -> Streaming<GenerateResponse> {
    let channel = Channel::from_shared(coordinator.url()).expect("a URL");
    let narrow = channel.initial_stream_window_size(bytes).connect_lazy();
    let parts = CoordinatorClient::new(narrow).generate(request).await;
    parts.expect("in order").into_inner()
}

/// Generates with a client's own trace.
pub(crate) async fn with_parent(
    coordinator: &Service,
    request: GenerateRequest,
    traceparent: &str,
) -> Answer {
    let mut request = Request::new(request);
    let metadata = request.metadata_mut();
    metadata.insert("traceparent", traceparent.parse().expect("ASCII"));
    metadata.insert("baggage", "user=somebody".parse().expect("ASCII"));
    let parts = client(coordinator).generate(request).await;
    collect(parts.expect("in order").into_inner(), |_| {}).await
}

/// Generates, and calls `fault` once as soon as `after` tokens have come.
pub(crate) async fn with_fault(
    coordinator: &Service,
    request: GenerateRequest,
    after: usize,
    fault: impl FnOnce(),
) -> Answer {
    let mut fault = Some(fault);
    let answer = collect(begin(coordinator, request).await, |tokens| {
        if tokens >= after
            && let Some(fault) = fault.take()
        {
            fault();
        }
    });
    let answer = answer.await;
    assert!(fault.is_none(), "the fault never happened");
    answer
}

/// The call ends with the failure that its answer tells, and else well.
fn ends_the_call(finished: &Finished, status: Option<&Status>) {
    if finished.reason() != FinishReason::Error {
        assert!(status.is_none(), "{status:?}");
        return;
    }
    let status = status.expect("the status of a failure");
    assert_eq!(status.code() as u32, finished.error_code);
    assert_eq!(status.message(), finished.error);
    let info = status.get_details_retry_info();
    let delay = info.and_then(|info| info.retry_delay).unwrap_or_default();
    assert_eq!(delay.as_millis() as u32, finished.retry_after_ms);
}

/// Reads an answer to its end; `at` is told the number of tokens after each chunk. Checks what
/// holds for every answer: one `started`, one `finished` at the very end, exact usage.
pub(crate) async fn collect(
    mut parts: Streaming<GenerateResponse>,
    mut at: impl FnMut(usize),
) -> Answer {
    let mut answer = Answer::default();
    let mut finished = None;
    let mut starts = 0;
    let status = loop {
        let message = match parts.message().await {
            Ok(Some(message)) => message,
            Ok(None) => break None,
            Err(status) => break Some(status),
        };
        assert!(finished.is_none(), "nothing may follow the end");
        match message.part.expect("a part") {
            Part::Started(started) => {
                starts += 1;
                answer.started = started;
            }
            Part::Chunk(chunk) => {
                assert_eq!(chunk.token_ids.len(), chunk.origins.len());
                answer.origins.extend(chunk.origins().collect::<Vec<_>>());
                answer.logprobs.extend(chunk.logprobs);
                answer.text.push_str(&chunk.text);
                answer.pieces.push_str(&chunk.pieces.concat());
                answer.tokens.extend(chunk.token_ids);
                at(answer.tokens.len());
            }
            Part::Prompt(part) => {
                answer.prompt.extend(part.token_ids);
                answer.prompt_logprobs.extend(part.logprobs);
            }
            Part::Round(round) => answer.rounds.push(round),
            Part::Finished(end) => finished = Some(end),
        }
    };
    answer.finished = finished.unwrap_or_else(|| panic!("no end but {status:?}"));
    ends_the_call(&answer.finished, status.as_ref());
    assert_eq!(starts, 1);
    let finished = &answer.finished;
    let kept_word = answer.started.reproducible == finished.reproducible;
    assert!(kept_word || !finished.reproducible && !finished.exact);
    let usage = answer.finished.usage.expect("usage");
    assert_eq!(usage.completion_tokens as usize, answer.tokens.len());
    assert_eq!(usage.prompt_tokens, answer.started.prompt_tokens);
    answer
}
