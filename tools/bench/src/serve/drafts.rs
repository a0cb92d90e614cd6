//! What a server says of its drafts: with its answers, or in its metrics.

use std::ops::{Add, Sub};

use serde_json::Value;

/// Draft tokens, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DraftCounts {
    /// Rounds of drafting and verification, where they are told.
    pub(super) rounds: Option<f64>,
    pub(super) drafted: f64,
    pub(super) accepted: f64,
}

/// Where servers put the counts of one answer: the object, and its rounds, draft tokens and accepted ones.
///
/// vLLM has the first with `--per-request-spec-decode-metrics`, and this product under the same names; SGLang the second
/// where the request has `return_spec_tokens_details`; llama.cpp the third.
const FORMS: [(&str, Option<&str>, &str, &str); 3] = [
    (
        "/metrics/speculative_decoding",
        Some("num_spec_steps"),
        "num_draft_tokens",
        "num_accepted_draft_tokens",
    ),
    (
        "/sglext/spec_tokens_details",
        Some("spec_verify_ct"),
        "spec_num_proposed_drafts",
        "spec_num_correct_drafts",
    ),
    ("/timings", None, "draft_n", "draft_n_accepted"),
];

/// vLLM's counters of rounds, draft tokens and accepted ones.
const COUNTERS: [&str; 3] = [
    "vllm:spec_decode_num_drafts",
    "vllm:spec_decode_num_draft_tokens",
    "vllm:spec_decode_num_accepted_tokens",
];

impl DraftCounts {
    /// Returns what an event of an answer tells.
    pub(super) fn of_event(event: &Value) -> Option<Self> {
        FORMS
            .into_iter()
            .find_map(|(place, rounds, drafted, accepted)| {
                let counts = event.pointer(place)?;
                Some(Self {
                    rounds: rounds.and_then(|name| counts[name].as_f64()),
                    drafted: counts[drafted].as_f64()?,
                    accepted: counts[accepted].as_f64()?,
                })
            })
    }

    /// Returns what metrics in Prometheus' text format tell, added up over labels; none if they count no drafts.
    pub(super) fn of_metrics(text: &str) -> Option<Self> {
        let [rounds, drafted, accepted] = COUNTERS.map(|name| counter(text, name));
        Some(Self {
            rounds,
            drafted: drafted?,
            accepted: accepted?,
        })
    }

    /// Returns the share of draft tokens that were accepted; none without drafts.
    pub(super) fn acceptance(&self) -> Option<f64> {
        (self.drafted > 0.0).then(|| self.accepted / self.drafted)
    }

    /// Returns the tokens of a round: those accepted and one more.
    pub(super) fn tokens_per_round(&self) -> Option<f64> {
        let rounds = self.rounds.filter(|rounds| *rounds > 0.0)?;
        Some(1.0 + self.accepted / rounds)
    }
}

impl Add for DraftCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rounds: self.rounds.zip(other.rounds).map(|(a, b)| a + b),
            drafted: self.drafted + other.drafted,
            accepted: self.accepted + other.accepted,
        }
    }
}

impl Sub for DraftCounts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            rounds: self.rounds.zip(before.rounds).map(|(a, b)| a - b),
            drafted: self.drafted - before.drafted,
            accepted: self.accepted - before.accepted,
        }
    }
}

/// Returns the sum of the counter `name`, with or without the ending that newer libraries give it.
fn counter(text: &str, name: &str) -> Option<f64> {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let rest = rest.strip_prefix("_total").unwrap_or(rest);
        let after = match rest.strip_prefix('{') {
            // Labels are quoted and may hold a brace; what comes after them has none.
            Some(labels) => labels.rsplit_once('}')?.1,
            None => rest.strip_prefix(' ')?,
        };
        after.split_whitespace().next()?.parse::<f64>().ok()
    });
    values.reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts(rounds: Option<f64>, drafted: f64, accepted: f64) -> DraftCounts {
        DraftCounts {
            rounds,
            drafted,
            accepted,
        }
    }

    #[test]
    fn the_counts_of_each_server_are_found() {
        let of = |event: Value| DraftCounts::of_event(&event);
        let vllm =
            json!({ "num_spec_steps": 2, "num_draft_tokens": 8, "num_accepted_draft_tokens": 5 });
        let timings = json!({ "predicted_n": 8, "draft_n": 9, "draft_n_accepted": 3 });
        let both = json!({ "metrics": { "speculative_decoding": vllm }, "timings": timings });
        assert_eq!(of(both), Some(counts(Some(2.0), 8.0, 5.0)));
        assert_eq!(
            of(json!({ "timings": timings })),
            Some(counts(None, 9.0, 3.0))
        );
        let sglang = json!({ "spec_verify_ct": 4, "spec_num_proposed_drafts": 12, "spec_num_correct_drafts": 6 });
        let found = of(json!({ "sglext": { "spec_tokens_details": sglang } }));
        assert_eq!(found, Some(counts(Some(4.0), 12.0, 6.0)));
        for untold in [
            json!({ "usage": { "completion_tokens": 3 } }),
            json!({ "timings": { "predicted_n": 3 } }),
            json!({ "timings": { "draft_n": null, "draft_n_accepted": null }, "metrics": null }),
        ] {
            assert_eq!(of(untold), None);
        }
    }

    #[test]
    fn counters_are_added_up_over_their_labels() {
        let text = "# TYPE vllm:spec_decode_num_drafts_total counter\n\
            vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"a}b c\"} 10.0\n\
            vllm:spec_decode_num_drafts_total{engine=\"1\"} 5 1700000000\n\
            vllm:spec_decode_num_drafts_created{engine=\"0\"} 1.7e9\n\
            vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 4.5e1\n\
            vllm:spec_decode_num_accepted_tokens 30\n\
            vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 12\n";
        let found = DraftCounts::of_metrics(text);
        assert_eq!(found, Some(counts(Some(15.0), 45.0, 30.0)));
        assert_eq!(
            DraftCounts::of_metrics("vllm:num_requests_running 1\n"),
            None
        );
    }

    #[test]
    fn shares_are_of_the_drafts_between_two_readings() {
        let [before, after] = [
            counts(Some(10.0), 40.0, 20.0),
            counts(Some(20.0), 80.0, 50.0),
        ];
        let between = after - before;
        assert_eq!(between.acceptance(), Some(0.75));
        assert_eq!(between.tokens_per_round(), Some(4.0));
        // Where one does not tell its rounds, those of all are not known.
        let all = between + counts(None, 10.0, 0.0);
        assert_eq!(
            (all.acceptance(), all.tokens_per_round()),
            (Some(0.6), None)
        );
        assert_eq!(DraftCounts::default().acceptance(), None);
    }
}
