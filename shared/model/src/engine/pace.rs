//! How much of a prompt goes into one forward, by how long forwards take on this machine.

use std::time::Duration;

/// Fewest tokens that a prompt is cut into. On machines so slow that even these take longer than they should,
/// fewer would read the weights so often that the prompt takes much longer in all.
pub(super) const LEAST: usize = 16;

/// Most tokens of a forward that reads a prompt, so that it takes about as long as it may.
///
/// A forward takes a time for the weights and a time a token. The bound goes down in proportion after a forward
/// that took too long and up after one that did not, so it settles where the sum of both is what it may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptPace {
    /// How long a forward may take; none for as long as it likes.
    aim: Option<Duration>,
    tokens: usize,
    most: usize,
}

impl PromptPace {
    /// Begins with few tokens, for nothing is known yet, and never goes beyond `most`.
    pub(super) fn new(aim: Option<Duration>, most: usize) -> Self {
        let tokens = aim.map_or(most, |_| LEAST.min(most));
        Self { aim, tokens, most }
    }

    /// Most tokens of the next forward that reads a prompt.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Takes account of a forward of `tokens` tokens, some of them of a prompt, that took `elapsed`.
    pub(super) fn measured(&mut self, tokens: usize, elapsed: Duration) {
        let Some(aim) = self.aim else { return };
        let ratio = aim.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let fitting = (tokens as f64 * ratio) as usize;
        // A short forward shows little of what a long one takes, and any may have been disturbed.
        self.tokens = if elapsed > aim {
            fitting.clamp(self.tokens / 2, self.tokens)
        } else {
            fitting.clamp(self.tokens, 2 * self.tokens)
        };
        self.tokens = self.tokens.max(LEAST).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIM: Duration = Duration::from_millis(50);

    /// Returns how many tokens are forwarded at a time on a machine that needs `weights` a forward and `token` a token,
    /// after `forwards` of them.
    fn settled(weights: Duration, token: Duration, forwards: usize) -> usize {
        let mut pace = PromptPace::new(Some(AIM), 256);
        for _ in 0..forwards {
            let tokens = pace.tokens();
            pace.measured(tokens, weights + token * tokens as u32);
        }
        pace.tokens()
    }

    #[test]
    fn forwards_come_to_take_what_they_may() {
        let (weights, token) = (Duration::from_millis(10), Duration::from_micros(500));
        let tokens = settled(weights, token, 20);
        assert!((76..=80).contains(&tokens), "{tokens}");
    }

    #[test]
    fn a_fast_machine_cuts_as_little_as_it_may_and_a_slow_one_not_too_small() {
        let fast = (Duration::from_millis(2), Duration::from_micros(20));
        assert_eq!(settled(fast.0, fast.1, 4), 256);
        let slow = (Duration::from_millis(400), Duration::from_millis(30));
        assert_eq!(settled(slow.0, slow.1, 20), LEAST);
    }

    #[test]
    fn the_end_of_a_prompt_and_one_disturbance_change_little() {
        let mut pace = PromptPace::new(Some(AIM), 256);
        for _ in 0..4 {
            pace.measured(pace.tokens(), Duration::from_millis(10));
        }
        assert_eq!(pace.tokens(), 256);
        // Three tokens left, most of whose time is for the weights.
        pace.measured(3, Duration::from_millis(20));
        assert_eq!(pace.tokens(), 256);
        pace.measured(256, Duration::from_secs(10));
        assert_eq!(pace.tokens(), 128);
    }

    #[test]
    fn without_a_bound_on_time_nothing_is_measured() {
        let mut pace = PromptPace::new(None, 256);
        pace.measured(256, Duration::from_secs(10));
        assert_eq!(pace.tokens(), 256);
    }

    #[test]
    fn a_bound_below_the_least_holds() {
        let mut pace = PromptPace::new(Some(AIM), 5);
        assert_eq!(pace.tokens(), 5);
        pace.measured(5, Duration::from_secs(1));
        assert_eq!(pace.tokens(), 5);
    }
}
