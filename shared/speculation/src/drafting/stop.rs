//! When a drafter stops before it has drafted as many tokens as it may.
//!
//! What is drafted must stay a sample of the distribution, so whether a token is drawn may depend on its
//! distribution and on what is known of the tokens before it, never on the token itself; and a token that was drawn
//! is submitted. [`Stopping`] ensures that by its functions: none takes a token, and the
//! acceptance predicted of a token can only end drafting after the next one.

use super::policies::{Reads, StopPolicy, Stops};
use crate::confidence::Confidence;
use crate::real::Real;

/// When a drafter stops: a [`StopPolicy`] with its threshold, or never.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopRule(Option<Stop>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stop {
    policy: &'static StopPolicy,
    threshold: f64,
    least: u32,
}

impl StopRule {
    /// The rule that never stops.
    pub const NEVER: Self = Self(None);

    /// The rule of `policy` with `threshold`.
    pub const fn new(policy: &'static StopPolicy, threshold: f64) -> Self {
        Self(Some(Stop {
            policy,
            threshold,
            least: 0,
        }))
    }

    /// The same rule with at least `least` draft tokens, if its policy stops after tokens; others know no fewest.
    #[must_use]
    pub const fn with_least(self, least: u32) -> Self {
        match self.0 {
            Some(stop) if matches!(stop.policy.stops, Stops::After(_)) => {
                Self(Some(Stop { least, ..stop }))
            }
            _ => self,
        }
    }

    /// Its policy with the threshold; none if it never stops.
    pub fn policy(&self) -> Option<(&'static StopPolicy, f64)> {
        self.0.map(|stop| (stop.policy, stop.threshold))
    }

    /// Fewest draft tokens.
    pub fn least(&self) -> u32 {
        self.0.map_or(0, |stop| stop.least)
    }

    /// Whether `part` of each distribution's confidence must be known.
    pub fn reads(&self, part: Reads) -> bool {
        self.0.is_some_and(|stop| match stop.policy.stops {
            Stops::Before { reads, .. } => reads == part,
            Stops::After(_) => false,
        })
    }

    /// Whether the acceptance of tokens must be predicted, by a head that was trained for it.
    pub fn needs_head(&self) -> bool {
        self.0
            .is_some_and(|stop| matches!(stop.policy.stops, Stops::After(_)))
    }

    /// Whether drafting stops before a token of a distribution with this confidence, of which what
    /// [`StopRule::reads`] names must be there. Never for a policy that stops after tokens.
    pub fn stops<F: Real>(&self, confidence: Confidence<F>) -> bool {
        self.0.is_some_and(|stop| match stop.policy.stops {
            Stops::Before { test, .. } => test(confidence.double(), stop.threshold),
            Stops::After(_) => false,
        })
    }

    /// Whether drafting stops before a token that is known beforehand, as Max-Gram's are: the token is accepted with
    /// probability `chance` if the `drafted` tokens before it are, and all of them together with probability
    /// `survival`. What depends on nothing but the context may be left out after it was looked at.
    pub fn stops_before_known(&self, drafted: u32, chance: f64, survival: f64) -> bool {
        self.0.is_some_and(|stop| match stop.policy.stops {
            Stops::Before {
                reads: Reads::Max,
                test,
            } => {
                let confidence = Confidence {
                    max: chance,
                    entropy: 0.0,
                };
                test(confidence, stop.threshold)
            }
            Stops::Before { .. } => false,
            Stops::After(test) => drafted >= stop.least && test(survival, stop.threshold),
        })
    }

    /// Whether drafting stops after `drawn` tokens, of which all but the last are accepted with this probability.
    fn stops_after(&self, drawn: u32, all_accepted: f64) -> bool {
        self.0.is_some_and(|stop| match stop.policy.stops {
            Stops::Before { .. } => false,
            Stops::After(test) => drawn >= stop.least && test(all_accepted, stop.threshold),
        })
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
        self.rule.needs_head() && self.judged < self.drawn
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
        self.rule.stops_after(self.drawn, self.all_accepted)
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
    use crate::drafting::policies::{CONFIDENCE, ENTROPY, LEARNED};

    fn sure<F: Real>(max: F, entropy: F) -> Confidence<F> {
        Confidence { max, entropy }
    }

    #[test]
    fn a_stop_rule_is_strict() {
        let (below, above) = (
            StopRule::new(&CONFIDENCE, 0.5),
            StopRule::new(&ENTROPY, 0.5),
        );
        assert!(!StopRule::NEVER.stops(sure(0.0, 99.0)));
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
    fn of_known_tokens_only_those_are_drafted_that_are_sure_enough() {
        let confidence = StopRule::new(&CONFIDENCE, 0.5);
        assert!(!confidence.stops_before_known(0, 0.5, 0.1));
        assert!(confidence.stops_before_known(0, 0.49, 0.9));
        let learned = StopRule::new(&LEARNED, 0.75);
        assert!(!learned.stops_before_known(0, 0.1, 0.25));
        assert!(learned.stops_before_known(0, 0.9, 0.24));
        assert!(!learned.with_least(1).stops_before_known(0, 0.1, 0.1));
        assert!(learned.with_least(1).stops_before_known(1, 0.1, 0.1));
        assert!(!StopRule::NEVER.stops_before_known(9, 0.0, 0.0));
        assert!(!StopRule::new(&ENTROPY, 0.0).stops_before_known(9, 0.0, 0.0));
    }

    #[test]
    fn a_rule_on_the_distribution_stops_before_a_token_and_wants_no_prediction() {
        let mut stopping = Stopping::new(StopRule::new(&CONFIDENCE, 0.5));
        for _ in 0..3 {
            assert!(!stopping.stops_before(sure(0.6, 0.0)));
            assert!(!stopping.drawn() && !stopping.wants_prediction());
        }
        assert!(stopping.stops_before(sure(0.4, 0.0)));
        assert_eq!(stopping.len(), 3);
    }

    const IN_DOUBT: StopRule = StopRule::new(&LEARNED, 0.5).with_least(1);

    /// h = .5. The first token is judged .6 while the second is drawn: 1 - .6 < .5, go on. The second is
    /// judged .8 while the third is drawn: 1 - .48 > .5, so the third is the last.
    #[test]
    fn a_learned_rule_stops_after_the_token_that_follows_the_one_in_doubt() {
        let mut stopping = Stopping::new(IN_DOUBT);
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
            let mut stopping = Stopping::new(StopRule::new(&LEARNED, threshold).with_least(least));
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
        let mut stopping = Stopping::new(IN_DOUBT);
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
