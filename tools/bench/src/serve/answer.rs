//! What came of one request, and when.

use std::time::Duration;

use serde_json::Value;

use super::drafts::DraftCounts;

/// An answer as its stream brings it. Times count from when its request was sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// When the first event came that brought output.
    pub(super) first: Option<Duration>,
    /// When the last one came.
    last: Option<Duration>,
    /// When the stream ended.
    pub(super) end: Duration,
    /// Times between events that brought output.
    pub(super) gaps: Vec<Duration>,
    /// Events that brought output.
    pub(super) events: u32,
    usage: Option<TokenUsage>,
    /// What the server says of this answer's drafts.
    pub(super) drafts: Option<DraftCounts>,
    /// Whether the server said why the output ended.
    pub(super) is_finished: bool,
}

/// The tokens of a request, as the server counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TokenUsage {
    pub(super) prompt: u32,
    completion: u32,
}

impl Answer {
    /// Takes an event that came `at` this time.
    pub(super) fn read(&mut self, event: &Value, at: Duration) {
        let choice = &event["choices"][0];
        if brings_output(choice) {
            self.first.get_or_insert(at);
            if let Some(last) = self.last.replace(at) {
                self.gaps.push(at.saturating_sub(last));
            }
            self.events += 1;
        }
        self.is_finished |= choice["finish_reason"].is_string();
        // Servers that tell it more than once tell the sum so far.
        let tokens = |name: &str| {
            let tokens = event["usage"][name].as_u64()?;
            u32::try_from(tokens).ok()
        };
        if let Some(completion) = tokens("completion_tokens") {
            let prompt = tokens("prompt_tokens").unwrap_or_default();
            self.usage = Some(TokenUsage { prompt, completion });
        }
        self.drafts = DraftCounts::of_event(event).or(self.drafts);
    }

    /// Returns the tokens as the server counts them, if it tells.
    pub(super) fn usage(&self) -> Option<TokenUsage> {
        self.usage
    }

    /// Returns the number of output tokens: the server's, or if it tells none, that of events.
    pub(super) fn output_tokens(&self) -> u32 {
        self.usage.map_or(self.events, |usage| usage.completion)
    }

    /// Returns the time from the first output to the last for each token after the first one; none where all came at
    /// once, for then no time between tokens was seen.
    pub(super) fn time_per_output_token(&self) -> Option<Duration> {
        let tokens = self
            .output_tokens()
            .checked_sub(1)
            .filter(|more| *more > 0)?;
        let (first, last) = self.first.zip(self.last)?;
        (self.events > 1).then(|| last.saturating_sub(first) / tokens)
    }
}

/// Whether a choice of an event has text, reasoning or a call of a tool: an event with a role alone comes before any
/// token is computed.
fn brings_output(choice: &Value) -> bool {
    let delta = &choice["delta"];
    let texts = [
        &choice["text"],
        &delta["content"],
        &delta["reasoning_content"],
        &delta["reasoning"],
    ];
    let has_text = |value: &&Value| value.as_str().is_some_and(|text| !text.is_empty());
    let calls = delta["tool_calls"].as_array();
    texts.iter().any(has_text) || calls.is_some_and(|calls| !calls.is_empty())
}

#[cfg(test)]
impl Answer {
    /// One whose events of one token each came at these times.
    pub(super) fn at(times: &[Duration], end: Duration) -> Self {
        let mut answer = Self::default();
        let event = serde_json::json!({ "choices": [{ "text": "a" }] });
        for &at in times {
            answer.read(&event, at);
        }
        answer.end = end;
        answer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_token_is_the_first_event_with_output() {
        let mut answer = Answer::default();
        let delta =
            |delta: Value| json!({ "choices": [{ "delta": delta, "finish_reason": null }] });
        answer.read(&delta(json!({ "role": "assistant", "content": "" })), ms(1));
        assert_eq!((answer.first, answer.events), (None, 0));
        for (at, delta) in [
            (5, delta(json!({ "reasoning_content": "Hm" }))),
            (9, delta(json!({ "content": "Yes" }))),
            (10, delta(json!({ "tool_calls": [{ "index": 0 }] }))),
            (11, delta(json!({}))),
        ] {
            answer.read(&delta, ms(at));
        }
        assert_eq!((answer.first, answer.events), (Some(ms(5)), 3));
        assert_eq!(answer.gaps, [ms(4), ms(1)]);
        assert!(!answer.is_finished);
        answer.read(
            &json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
            ms(12),
        );
        assert!(answer.is_finished);
    }

    #[test]
    fn tokens_are_those_of_the_usage_and_else_events() {
        let mut answer = Answer::at(&[ms(10), ms(20), ms(30)], ms(40));
        assert_eq!(answer.output_tokens(), 3);
        assert_eq!(answer.time_per_output_token(), Some(ms(10)));
        answer.read(&json!({ "choices": [], "usage": null }), ms(31));
        assert_eq!(answer.usage(), None);
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 11 });
        answer.read(&json!({ "choices": [], "usage": usage }), ms(32));
        assert_eq!(answer.usage().expect("usage").prompt, 7);
        assert_eq!(answer.output_tokens(), 11);
        // 20 ms for the ten after the first.
        assert_eq!(answer.time_per_output_token(), Some(ms(2)));
    }

    #[test]
    fn tokens_that_come_at_once_have_no_time_between_them() {
        let mut answer = Answer::at(&[ms(10)], ms(11));
        assert_eq!(answer.time_per_output_token(), None);
        answer.read(&json!({ "usage": { "completion_tokens": 9 } }), ms(11));
        assert_eq!(answer.output_tokens(), 9);
        assert_eq!(answer.time_per_output_token(), None);
    }
}
