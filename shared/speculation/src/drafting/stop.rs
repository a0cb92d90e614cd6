//! When a drafter stops before it has drafted as many tokens as it may.
//!
//! What is drafted must stay a sample of the distribution, so whether a token is drawn may depend on its
//! distribution and on what is known of the tokens before it, never on the token itself; and a token that was drawn
//! is submitted. [`Stopping`] keeps to that by what it can be told: no function of it takes a token, and the
//! acceptance predicted of a token can only end drafting after the next one.

use crate::confidence::Confidence;
use crate::real::Real;

/// When a drafter stops before drawing the next token. It reads the distribution and earlier tokens only, never
/// a drawn token, so that what is drafted stays a sample of the distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum StopRule {
    /// Never.
    #[default]
    Never,
    /// Where the unscaled distribution's maximum is below this.
    MaxBelow(f64),
    /// Where the unscaled distribution's entropy is above this, in nats.
    EntropyAbove(f64),
    /// SpecDec++: where the predicted probability that one of the tokens so far is refused exceeds the
    /// threshold.
    Learned {
        /// Threshold h.
        threshold: f64,
        /// Fewest draft tokens.
        least: u32,
    },
}

impl StopRule {
    /// Whether drafting stops before a token of a distribution with this confidence. Never for a learned rule,
    /// which stops after tokens.
    pub fn stops<F: Real>(&self, confidence: Confidence<F>) -> bool {
        match *self {
            Self::Never | Self::Learned { .. } => false,
            Self::MaxBelow(least) => confidence.max.as_f64() < least,
            Self::EntropyAbove(most) => confidence.entropy.as_f64() > most,
        }
    }
}

/// The state of one block under a [`StopRule`]; how many tokens a block may have at most is the caller's
/// to keep to.
///
/// For each token: forward the draft model on what was drawn before, ask
/// [`Stopping::stops_before`], tell [`Stopping::predicted`] if [`Stopping::wants_prediction`], draw the
/// token, tell [`Stopping::drawn`] (Huang et al., "SpecDec++: Boosting Speculative Decoding via Adaptive
/// Candidate Lengths", Algorithm 2). The last token drawn is submitted although nothing was predicted
/// of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopping {
    rule: StopRule,
    /// Tokens drawn.
    drawn: u32,
    /// Tokens whose acceptance was predicted: the first ones.
    judged: u32,
    /// Predicted probability that all of those are accepted.
    all_accepted: f64,
}

impl Stopping {
    /// A block with no token drawn yet.
    pub fn new(rule: StopRule) -> Self {
        Self {
            rule,
            drawn: 0,
            judged: 0,
            all_accepted: 1.0,
        }
    }

    /// Whether no further token is drawn, where the next one would be of a distribution with this confidence.
    pub fn stops_before<F: Real>(&self, confidence: Confidence<F>) -> bool {
        self.rule.stops(confidence)
    }

    /// Whether the acceptance of the last drawn token is to be predicted, before the next is drawn. Its
    /// hidden state is a row of the forward that gives the next distribution.
    pub fn wants_prediction(&self) -> bool {
        matches!(self.rule, StopRule::Learned { .. }) && self.judged < self.drawn
    }

    /// Takes note that the last drawn token is accepted with probability `accept`, given that those
    /// before it are. What is no number counts as 0. Ignored where no prediction is wanted.
    pub fn predicted(&mut self, accept: f64) {
        if self.wants_prediction() {
            self.judged = self.drawn;
            self.all_accepted *= accept.clamp(0.0, 1.0).max(0.0);
        }
    }

    /// Takes note that a token was drawn, and will be submitted. Whether drafting stops after it.
    pub fn drawn(&mut self) -> bool {
        self.drawn += 1;
        match self.rule {
            StopRule::Learned { threshold, least } => {
                self.drawn >= least && 1.0 - self.all_accepted > threshold
            }
            StopRule::Never | StopRule::MaxBelow(_) | StopRule::EntropyAbove(_) => false,
        }
    }

    /// Tokens drawn so far.
    pub fn len(&self) -> u32 {
        self.drawn
    }

    /// Whether no token was drawn so far.
    pub fn is_empty(&self) -> bool {
        self.drawn == 0
    }

    /// The predicted probability that all tokens judged so far are accepted.
    pub fn all_accepted(&self) -> f64 {
        self.all_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure<F: Real>(max: F, entropy: F) -> Confidence<F> {
        Confidence { max, entropy }
    }

    #[test]
    fn a_stop_rule_is_strict() {
        let (below, above) = (StopRule::MaxBelow(0.5), StopRule::EntropyAbove(0.5));
        assert!(!StopRule::Never.stops(sure(0.0, 99.0)));
        assert!(!below.stops(sure(0.5_f64, 99.0)));
        assert!(below.stops(sure(0.5_f64.next_down(), 0.0)));
        assert!(!above.stops(sure(0.0, 0.5_f64)));
        assert!(above.stops(sure(1.0, 0.5_f64.next_up())));
        // Also where single precision is served.
        assert!(!below.stops(sure(0.5_f32, 99.0)));
        assert!(below.stops(sure(0.5_f32.next_down(), 0.0)));
        assert!(!above.stops(sure(0.0, 0.5_f32)));
        assert!(above.stops(sure(1.0, 0.5_f32.next_up())));
    }

    #[test]
    fn a_rule_on_the_distribution_stops_before_a_token_and_wants_no_prediction() {
        let mut stopping = Stopping::new(StopRule::MaxBelow(0.5));
        for _ in 0..3 {
            assert!(!stopping.stops_before(sure(0.6, 0.0)));
            assert!(!stopping.drawn() && !stopping.wants_prediction());
        }
        assert!(stopping.stops_before(sure(0.4, 0.0)));
        assert_eq!(stopping.len(), 3);
    }

    const LEARNED: StopRule = StopRule::Learned {
        threshold: 0.5,
        least: 1,
    };

    /// h = .5. The first token is judged .6 while the second is drawn: 1 - .6 < .5, go on. The second is
    /// judged .8 while the third is drawn: 1 - .48 > .5, so the third is the last.
    #[test]
    fn a_learned_rule_stops_after_the_token_that_follows_the_one_in_doubt() {
        let mut stopping = Stopping::new(LEARNED);
        // However flat the distribution: no learned rule reads it.
        assert!(!stopping.stops_before(sure(0.0, 99.0)));
        assert!(!stopping.wants_prediction(), "no token was drawn");
        assert!(!stopping.drawn());
        assert!(stopping.wants_prediction());
        stopping.predicted(0.6);
        assert!(!stopping.drawn());
        stopping.predicted(0.8);
        assert!((stopping.all_accepted() - 0.48).abs() < 1e-15);
        assert!(stopping.drawn());
        assert_eq!(stopping.len(), 3);
    }

    #[test]
    fn a_learned_rule_never_stops_after_the_first_token_nor_before_the_fewest() {
        for least in [0, 1, 2, 5] {
            let threshold = 0.0;
            let mut stopping = Stopping::new(StopRule::Learned { threshold, least });
            let mut len = 1;
            while !stopping.drawn() {
                stopping.predicted(0.1);
                len += 1;
            }
            assert_eq!(len, least.max(2));
        }
    }

    #[test]
    fn a_token_is_judged_once_and_by_a_probability() {
        let mut stopping = Stopping::new(LEARNED);
        stopping.predicted(0.1);
        assert_eq!(stopping.all_accepted(), 1.0, "nothing was drawn");
        stopping.drawn();
        stopping.predicted(0.9);
        stopping.predicted(0.1);
        assert_eq!(stopping.all_accepted(), 0.9);
        stopping.drawn();
        stopping.predicted(7.0);
        assert_eq!(stopping.all_accepted(), 0.9);
        stopping.drawn();
        stopping.predicted(f64::NAN);
        assert_eq!(stopping.all_accepted(), 0.0);
        assert!(stopping.drawn());
    }
}
