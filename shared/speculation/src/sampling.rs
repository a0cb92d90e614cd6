//! The sampling parameters of a request, with their ranges.

use std::collections::HashSet;

use smart_default::SmartDefault;

use crate::TokenId;
use crate::bad_value::BadValue;
use crate::constraint::GrammarSpec;

/// How a logits row becomes the distribution a token is drawn from; the same on drafter and verifier.
#[derive(Clone, Debug, PartialEq, SmartDefault)]
pub struct SamplingParams {
    /// Divides the logits; 0 takes the most likely token, the lowest id among equals.
    #[default(1.0)]
    pub temperature: f32,
    /// Keeps the k most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the smallest set of most likely tokens that reaches this mass, in (0, 1].
    #[default(1.0)]
    pub top_p: f32,
    /// Keeps tokens at least this fraction as likely as the most likely one, in [0, 1].
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen in prompt or output; 0.01 to
    /// 100.
    #[default(1.0)]
    pub repetition_penalty: f32,
    /// Subtracted from the logit of every token seen in the output.
    pub presence_penalty: f32,
    /// Subtracted once for each time the token stands in the output.
    pub frequency_penalty: f32,
    /// Added to single logits.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Tokens that are never drawn.
    pub banned_tokens: Vec<TokenId>,
    /// If not empty, the only tokens that may be drawn.
    pub allowed_tokens: Vec<TokenId>,
    /// Tokens that end the output. They are banned before output position [`Self::min_tokens`].
    pub end_tokens: Vec<TokenId>,
    /// Fewest output tokens, the end token not counted.
    pub min_tokens: u32,
    /// What the output must follow.
    pub grammar: Option<GrammarSpec>,
}

impl SamplingParams {
    /// Largest temperature accepted; beyond it every distribution is uniform for practical purposes.
    pub const MAX_TEMPERATURE: f32 = 100.0;

    /// Largest change of a logit, up or down. Beyond it a token is certain or impossible anyway, and
    /// sums of changes stay finite.
    pub const MAX_SHIFT: f32 = 10_000.0;

    /// Checks every parameter against its range, and every token id against the vocabulary.
    ///
    /// # Errors
    /// Names the first parameter that is out of range, its value and the range. NaN is in no range.
    pub fn validate(&self, vocab_size: u32) -> Result<(), BadValue> {
        let within = BadValue::within::<f32>;
        let shift = |field, value| within(field, value, -Self::MAX_SHIFT..=Self::MAX_SHIFT);
        within("temperature", self.temperature, 0.0..=Self::MAX_TEMPERATURE)?;
        let fits = self.top_p > 0.0 && self.top_p <= 1.0;
        BadValue::in_range(fits, "top_p", self.top_p, "more than 0, at most 1")?;
        within("min_p", self.min_p, 0.0..=1.0)?;
        within("repetition_penalty", self.repetition_penalty, 0.01..=100.0)?;
        shift("presence_penalty", self.presence_penalty)?;
        shift("frequency_penalty", self.frequency_penalty)?;
        for &(_, bias) in &self.logit_bias {
            shift("logit_bias", bias)?;
        }
        let biased: Vec<TokenId> = self.logit_bias.iter().map(|&(id, _)| id).collect();
        for (field, ids) in [
            ("logit_bias", &biased),
            ("banned_token_ids", &self.banned_tokens),
            ("allowed_token_ids", &self.allowed_tokens),
            ("end_token_ids", &self.end_tokens),
        ] {
            if let Some(id) = ids.iter().find(|&&id| id >= vocab_size) {
                let expected = format!("token ids below {vocab_size}, the vocabulary's size");
                BadValue::in_range(false, field, id, expected)?;
            }
        }
        // It may end before.
        let fits = self.grammar.is_none() || self.min_tokens == 0;
        let expected = "0 under a grammar, which says where the output ends";
        BadValue::in_range(fits, "min_tokens", self.min_tokens, expected)?;
        self.check_support(vocab_size)
    }

    /// Checks that bans and masks leave a token at every position.
    fn check_support(&self, vocab_size: u32) -> Result<(), BadValue> {
        let banned: HashSet<TokenId> = self.banned_tokens.iter().copied().collect();
        let left = |ends: &[TokenId]| {
            let may = |token: &TokenId| !banned.contains(token) && !ends.contains(token);
            match self.allowed_tokens.as_slice() {
                [] => (0..vocab_size).any(|token| may(&token)),
                allowed => allowed.iter().any(may),
            }
        };
        let (field, value) = if self.allowed_tokens.is_empty() {
            ("banned_token_ids", "the whole vocabulary")
        } else {
            ("allowed_token_ids", "a list of nothing but banned tokens")
        };
        let expected = "at least one token that may be drawn";
        BadValue::in_range(left(&[]), field, value, expected)?;
        let fits = self.min_tokens == 0 || left(&self.end_tokens);
        let expected = "0 where only tokens that end the output may be drawn";
        BadValue::in_range(fits, "min_tokens", self.min_tokens, expected)
    }

    /// Whether top-k, top-p or min-p may cut tokens off the distributions.
    pub fn cuts(&self) -> bool {
        self.top_k > 0 || self.top_p < 1.0 || self.min_p > 0.0
    }

    /// Whether the distribution at a position depends on which tokens stand before it other than through
    /// the model.
    pub fn uses_history(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::pipeline::Pipeline;

    type Change = fn(&mut SamplingParams);

    #[test]
    fn each_bad_value_is_named() {
        let ok = SamplingParams::default();
        assert_eq!(ok.validate(10), Ok(()));
        let bad: Vec<(&str, Change)> = vec![
            ("temperature", |p| p.temperature = -1.0),
            ("temperature", |p| p.temperature = f32::NAN),
            ("top_p", |p| p.top_p = 0.0),
            ("top_p", |p| p.top_p = f32::NAN),
            ("min_p", |p| p.min_p = 1.5),
            ("repetition_penalty", |p| p.repetition_penalty = 0.0),
            ("presence_penalty", |p| p.presence_penalty = f32::INFINITY),
            ("frequency_penalty", |p| p.frequency_penalty = f32::NAN),
            ("logit_bias", |p| p.logit_bias = vec![(1, f32::NAN)]),
            ("logit_bias", |p| p.logit_bias = vec![(10, 0.0)]),
            ("end_token_ids", |p| p.end_tokens = vec![10]),
            ("banned_token_ids", |p| {
                p.banned_tokens = (0..10).rev().collect();
            }),
            ("allowed_token_ids", |p| {
                p.banned_tokens = vec![3, 2];
                p.allowed_tokens = vec![2, 3];
            }),
            ("min_tokens", |p| {
                p.banned_tokens = (0..9).collect();
                p.end_tokens = vec![9];
                p.min_tokens = 1;
            }),
            ("min_tokens", |p| {
                p.allowed_tokens = vec![8, 9];
                p.end_tokens = vec![9, 8];
                p.min_tokens = 3;
            }),
        ];
        for (field, change) in bad {
            let mut params = ok.clone();
            change(&mut params);
            let error = params.validate(10).expect_err(field);
            assert_eq!(error.field, field);
        }
    }

    /// Parameters that pass leave a token at every position, and others do not: as the pipeline has it.
    #[test]
    fn what_passes_leaves_a_token_everywhere() {
        let subset = |set: u32| (0..3).filter(|id| set >> id & 1 == 1).collect();
        let mut refused = 0;
        for case in 0..1024 {
            let params = SamplingParams {
                banned_tokens: subset(case),
                allowed_tokens: subset(case >> 3),
                end_tokens: subset(case >> 6),
                min_tokens: 2 * (case >> 9),
                ..SamplingParams::default()
            };
            let passes = params.validate(3).is_ok();
            refused += u32::from(!passes);
            let mut pipeline = Pipeline::new(params);
            let mut probs = |position| {
                let row = &mut [0.5_f64, 0.0, -0.5];
                pipeline.probs(row, &History::default(), position)
            };
            assert_eq!(passes, probs(0).is_ok() && probs(2).is_ok(), "{case}");
        }
        assert!(refused > 0);
    }
}
