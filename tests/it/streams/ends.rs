//! Answers that end at a token or at a string, with drafts before and behind it.

use wire::v1::{FinishReason, Origin};

use super::{equals_target_only, repeating, sampled, without_drafters};
use crate::client::With;

/// The greedy answer of [`REPEATING`](super::REPEATING), of [`STOPPED_TOKENS`] tokens.
const WHOLE: &str = " many apples does Tom have?\nAnswer: He has 12 apples because 12 / 5 = 12\n\
    He has 12 apples because 12 / 5 = 12\nHe has 12 apples left because 12 - 12";
const STOPPED_TOKENS: u32 = 60;

/// Where a stop string falls, and what is left of [`WHOLE`] by it.
struct StopCase {
    falls: &'static str,
    stop: &'static [&'static str],
    /// Of [`WHOLE`] the answer is what stands before this text's `nth` occurrence, from 0; all of it if there are fewer.
    before: (&'static str, usize),
}

const STOPS: &[StopCase] = &[
    StopCase {
        falls: "at the beginning",
        stop: &[" many"],
        before: (" many", 0),
    },
    StopCase {
        falls: "on one token that the prompt has too",
        stop: &[" does"],
        before: (" does", 0),
    },
    StopCase {
        falls: "within a token",
        stop: &["pp"],
        before: ("pp", 0),
    },
    StopCase {
        falls: "across two tokens, with a part of each",
        stop: &["les do"],
        before: ("les do", 0),
    },
    StopCase {
        falls: "across the end of a line",
        stop: &["?\nAns"],
        before: ("?\nAns", 0),
    },
    StopCase {
        falls: "where the first of two never does",
        stop: &["never", "Answer"],
        before: ("Answer", 0),
    },
    StopCase {
        falls: "before another that is listed first",
        stop: &["because", "Tom"],
        before: ("Tom", 0),
    },
    StopCase {
        falls: "where a beginning of it was in vain",
        stop: &["12 apples left"],
        before: ("12 apples", 2),
    },
    StopCase {
        falls: "across a repetition",
        stop: &["= 12\nHe has 12 apples bec"],
        before: ("= 12", 0),
    },
    StopCase {
        falls: "in the second repetition, from the beginning on",
        stop: &["12\nHe has 12 apples because 12 / 5 = 12\n"],
        before: ("12\n", 0),
    },
    StopCase {
        falls: "on the last token",
        stop: &["12 - 12"],
        before: ("12 - 12", 0),
    },
    StopCase {
        falls: "a letter behind the last token",
        stop: &["12 - 12\n"],
        before: ("12 - 12\n", 0),
    },
    StopCase {
        falls: "in the prompt alone",
        stop: &["gives 5"],
        before: ("gives 5", 0),
    },
];

impl StopCase {
    /// The answer's text and why it ends.
    fn expected(&self) -> (&'static str, FinishReason) {
        let (text, nth) = self.before;
        match WHOLE.match_indices(text).nth(nth) {
            Some((at, _)) => (&WHOLE[..at], FinishReason::Stop),
            None => (WHOLE, FinishReason::Length),
        }
    }
}

#[tokio::test]
async fn an_end_token_among_the_drafts_ends_the_answer_there() {
    let (coordinator, _verifier) = without_drafters().await;
    let requested = repeating(60).temperature(0.0).ignoring_eos();
    let whole = equals_target_only(&coordinator, &requested, "whole").await;
    let mut among = 0;
    for at in 0..40 {
        let end = whole.tokens[at];
        if whole.tokens[..at].contains(&end) {
            continue;
        }
        let mut requested = requested.clone();
        requested.stop_token_ids = vec![end];
        let what = format!("end at {at}");
        let answer = equals_target_only(&coordinator, &requested, &what).await;
        assert_eq!(answer.finished.reason(), FinishReason::Stop, "{what}");
        assert_eq!(answer.tokens, whole.tokens[..=at], "{what}");
        among += usize::from(answer.origins[at] == Origin::Accepted);
        // It may not end before.
        let late = sampled(requested, |it| it.min_tokens = at as u32 + 4);
        equals_target_only(&coordinator, &late, &format!("{what}, later")).await;
    }
    assert!(among > 0, "no end was a draft");
}

#[tokio::test]
async fn a_stop_string_ends_the_answer_wherever_it_falls() {
    let (coordinator, _verifier) = without_drafters().await;
    let mut behind = Vec::new();
    for case in STOPS {
        let mut requested = repeating(STOPPED_TOKENS).temperature(0.0).ignoring_eos();
        requested.stop = case.stop.iter().map(ToString::to_string).collect();
        let answer = equals_target_only(&coordinator, &requested, case.falls).await;
        let (text, reason) = case.expected();
        assert_eq!(answer.text, text, "{}", case.falls);
        assert_eq!(answer.finished.reason(), reason, "{}", case.falls);
        if answer.statistics().withheld > 0 {
            behind.push(case.falls);
        }
    }
    // Accepted drafts that a stop string took back.
    assert!(!behind.is_empty(), "no stop string had a draft behind it");
}
