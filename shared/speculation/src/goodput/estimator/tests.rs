//! Simulated requests with given times and acceptance.

use std::time::Duration;

mod load;

use super::*;
use crate::goodput::sample::SAMPLE;
use crate::philox::philox;

/// Peers with known times, in ms, and a known acceptance.
#[derive(Clone, Copy)]
struct World {
    /// Fixed part and part for each token.
    draft: (f64, f64),
    /// Fixed part and part for each scored position.
    verify: (f64, f64),
    acceptance: f64,
    /// From which position on acceptance is another, and which.
    later: Option<(u32, f64)>,
    seed: u32,
}

const WORLD: World = World {
    draft: (4.0, 3.0),
    verify: (30.0, 0.5),
    acceptance: 0.8,
    later: None,
    seed: 1,
};

fn world(acceptance: f64, seed: u32) -> World {
    World {
        acceptance,
        seed,
        ..WORLD
    }
}

impl World {
    fn best(&self, most: u32) -> u32 {
        let alone = self.verify.0 + self.verify.1;
        let costs = RoundCosts {
            fixed: self.draft.0 + alone,
            per_token: self.draft.1 + self.verify.1,
            alone,
        };
        let best = best_len((0..).map(|at| self.accept(at)), costs, most);
        if best.gain > 1.0 { best.len } else { 0 }
    }

    /// The acceptance of the draft token at position `at`.
    fn accept(&self, at: u32) -> f64 {
        let later = self.later.filter(|&(from, _)| at >= from);
        later.map_or(self.acceptance, |(_, acceptance)| acceptance)
    }

    /// Tokens by ms of rounds of these lengths, on average.
    fn throughput(&self, lens: &[u32]) -> f64 {
        let alone = self.verify.0 + self.verify.1;
        let (mut emitted, mut took) = (0.0, 0.0);
        for &len in lens {
            emitted += self.emitted(len);
            took += match len {
                0 => alone,
                len => self.draft.0 + alone + (self.draft.1 + self.verify.1) * f64::from(len),
            };
        }
        emitted / took
    }

    /// Tokens that a round of `len` draft tokens emits, on average.
    fn emitted(&self, len: u32) -> f64 {
        let survivals = (0..len).scan(1.0, |survival, at| {
            *survival *= self.accept(at);
            Some(*survival)
        });
        1.0 + survivals.sum::<f64>()
    }

    /// A round of `len` draft tokens, the `index`th of all.
    fn round(&self, len: u32, index: u32) -> MeasuredRound {
        let uniform = |at: u32| {
            let word = philox([index, at, 0, 0], [self.seed, 3])[0];
            f64::from(word) / 4_294_967_296.0
        };
        let accepted = (0..len).take_while(|&at| uniform(at) < self.accept(at));
        let accepted = accepted.count() as u32;
        // Up to 10 % more, at random.
        let took = |(fixed, slope): (f64, f64), count: u32, noise: f64| {
            let ms = (fixed + slope * f64::from(count)) * (1.0 + 0.1 * noise);
            Some(Duration::from_secs_f64(ms / 1000.0))
        };
        MeasuredRound {
            levels: len,
            nodes: len,
            accepted,
            refused: accepted < len,
            draft: (len > 0)
                .then(|| took(self.draft, len, uniform(100)))
                .flatten(),
            verify: took(self.verify, len + 1, uniform(101)),
            between: None,
        }
    }

    /// A step of the target alone.
    fn alone(&self) -> Duration {
        Duration::from_secs_f64((self.verify.0 + self.verify.1) / 1000.0)
    }

    /// Serves `tokens` as a session does, and returns the length of each round with a draft, with the tokens made
    /// before it. What was drafted before the token `hiccup` took a second more.
    fn serve_with(
        &self,
        estimator: &mut Estimator,
        (most, tokens, hiccup): (u32, u32, u32),
    ) -> Vec<(u32, u32)> {
        let mut lens = Vec::new();
        let (mut made, mut follows, mut index) = (0, true, 0);
        while made < tokens {
            let len = estimator.decide(most);
            if len == 0 {
                for _ in 0..estimator.rest().min(tokens - made) {
                    estimator.observe_alone(1, Some(self.alone()));
                    made += 1;
                }
                follows = false;
                continue;
            }
            lens.push((made, len));
            let mut round = self.round(len, index);
            let added = if made <= hiccup && hiccup < made + round.accepted + 1 {
                Duration::from_secs(1)
            } else {
                Duration::ZERO
            };
            round.draft = round.draft.map(|took| took + added).filter(|_| follows);
            estimator.observe(round);
            made += round.accepted + 1;
            follows = true;
            index += 1;
        }
        lens
    }

    /// The lengths of the rounds with drafts while `tokens` are served.
    fn serve(&self, estimator: &mut Estimator, most: u32, tokens: u32) -> Vec<u32> {
        let lens = self.serve_with(estimator, (most, tokens, u32::MAX));
        lens.into_iter().map(|(_, len)| len).collect()
    }
}

fn mean(lens: &[u32]) -> f64 {
    f64::from(lens.iter().sum::<u32>()) / lens.len() as f64
}

#[test]
fn it_settles_near_the_best_length_within_a_few_rounds() {
    for (acceptance, seed) in [(0.5, 1), (0.7, 2), (0.8, 3), (0.9, 4), (0.95, 5)] {
        let world = world(acceptance, seed);
        let best = f64::from(world.best(40));
        let lens = world.serve(&mut Estimator::default(), 40, 800);
        let early = mean(&lens[12..24]);
        let settled = mean(&lens[40..]);
        for (found, most) in [(early, 3.0 + 0.35 * best), (settled, 1.0 + 0.25 * best)] {
            assert!((found - best).abs() <= most, "{best}: {lens:?}");
        }
    }
}

#[test]
fn its_throughput_is_near_the_best() {
    for (acceptance, seed) in [(0.4, 1), (0.6, 2), (0.8, 3), (0.9, 4)] {
        let world = world(acceptance, seed);
        let tokens = 6_000;
        let lens = world.serve(&mut Estimator::default(), 40, tokens);
        let best = world.throughput(&[world.best(40)]);
        let rounds = world.throughput(&lens);
        assert!(rounds > 0.95 * best, "{rounds} of {best}: {lens:?}");
        // Chance ends drafting now and then where it hardly pays, and not for long.
        let drafted = lens.iter().map(|&len| world.emitted(len)).sum::<f64>();
        let share = drafted / f64::from(tokens);
        let all = 1.0 / (share / rounds + (1.0 - share) / world.throughput(&[0]));
        assert!(
            all > 0.92 * best,
            "{acceptance}: {share} drafted, {all} of {best}"
        );
    }
}

/// Drafts that stand for a few tokens and seldom beyond: one ratio for all positions drafts too far.
#[test]
fn it_knows_where_drafts_end() {
    for (later, seed) in [((4, 0.2), 1), ((4, 0.2), 2), ((3, 0.3), 3), ((8, 0.1), 4)] {
        let world = World {
            later: Some(later),
            ..world(0.95, seed)
        };
        let best = world.best(40);
        assert_eq!(best, later.0);
        let lens = world.serve(&mut Estimator::default(), 40, 1_500);
        let settled = mean(&lens[40..]);
        let share = world.throughput(&lens[40..]) / world.throughput(&[best]);
        let reported = format!("{later:?}: {settled} for {best}, {share} of its throughput");
        assert!(
            (settled - f64::from(best)).abs() < 1.2 && share > 0.97,
            "{reported}"
        );
    }
}

#[test]
fn it_moves_by_at_most_two_and_never_beyond_the_most() {
    for seed in 0..40 {
        for (acceptance, most) in [(0.1, 40), (0.97, 40), (0.97, 5), (0.6, 1)] {
            let world = world(acceptance, seed);
            let lens = world.serve(&mut Estimator::default(), most, 300);
            assert!(lens.iter().all(|&len| len <= most));
            let steps = lens.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
            assert!(steps.max() <= Some(2), "{lens:?}");
        }
    }
    let after = |last, best, most| {
        let mut estimator = Estimator::default();
        estimator.decision.len = last;
        estimator.near(best, most)
    };
    assert_eq!(after(9, 12, 3), 3);
    assert_eq!(after(0, 1, 20), 2);
    assert_eq!(after(0, 20, 20), 6);
    assert_eq!(after(20, 1, 20), 18);
}

/// The target alone is measured before anything is drafted.
#[test]
fn the_first_tokens_are_the_targets_own() {
    let lens = WORLD.serve_with(&mut Estimator::default(), (20, 100, u32::MAX));
    assert_eq!(lens[0], (FIRST_REST as u32, FIRST));
}

/// A draft model as slow as the target does not pay, and is tried less and less.
#[test]
fn drafting_that_does_not_pay_is_given_up_and_tried_again_later() {
    let slow = World {
        draft: (5.0, 40.0),
        acceptance: 0.3,
        ..WORLD
    };
    let mut estimator = Estimator::default();
    let tries = slow.serve_with(&mut estimator, (20, 30_000, u32::MAX));
    let drafted: u32 = tries.iter().map(|_| 1).sum();
    assert!((6..=120).contains(&drafted), "{drafted}");
    assert!(tries.iter().all(|&(_, len)| len <= FIRST), "{tries:?}");
    // Between two tries there are hundreds of tokens, and more and more.
    let begun: Vec<u32> = tries.iter().map(|(at, _)| *at).collect();
    let rests: Vec<u32> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let rests: Vec<u32> = rests.into_iter().filter(|&tokens| tokens > 100).collect();
    assert!(
        rests.len() >= 2 && rests.iter().all(|&tokens| tokens >= 500),
        "{rests:?}"
    );
    assert!(rests.last() > rests.first(), "{rests:?}");
    // Once it pays it is found out, and drafted for good.
    let lens = WORLD.serve_with(&mut estimator, (20, 20_000, u32::MAX));
    let best = f64::from(WORLD.best(20));
    let settled: Vec<u32> = lens.iter().rev().take(100).map(|(_, len)| *len).collect();
    assert!(
        (mean(&settled) - best).abs() <= 2.0,
        "{settled:?} for {best}"
    );
}

/// A machine that stands still for a second during one draft, the first of all or a later one.
#[test]
fn a_hiccup_does_not_end_drafting_for_long() {
    for hiccup in [0, 30, 40, 100] {
        for seed in 0..20 {
            let world = world(0.8, seed);
            let lens = world.serve_with(&mut Estimator::default(), (8, 1_000, hiccup));
            let rounds = lens.windows(2).map(|pair| pair[1].0 - pair[0].0);
            // A round emits nine tokens at most; what lies between two others is a rest.
            let drafted: u32 = rounds.filter(|&tokens| tokens <= 9).sum();
            assert!(drafted >= 700, "at {hiccup}, seed {seed}: {drafted}");
        }
    }
}

/// Whether drafting pays may hang on acceptance alone, and steps without drafts do not change that.
#[test]
fn drafting_that_is_hardly_ever_accepted_is_given_up() {
    for acceptance in [0.02, 0.1] {
        let world = world(acceptance, 1);
        assert_eq!(world.best(20), 0);
        let lens = world.serve(&mut Estimator::default(), 20, 3_000);
        assert!(lens.len() <= 60, "{acceptance}: {}", lens.len());
    }
}

/// A try whose time does not count goes on until there is one that does.
#[test]
fn a_try_lasts_until_it_is_timed() {
    let mut estimator = Estimator::default();
    let slow = World {
        draft: (5.0, 40.0),
        acceptance: 0.0,
        ..WORLD
    };
    slow.serve(&mut estimator, 20, 200);
    while estimator.decide(20) == 0 {
        estimator.observe_alone(estimator.rest(), None);
    }
    for _ in 0..5 {
        estimator.observe(MeasuredRound {
            draft: None,
            ..slow.round(2, 0)
        });
        assert!(estimator.decide(20) > 0);
    }
    for _ in 0..TRY {
        estimator.observe(slow.round(2, 0));
    }
    assert_eq!(estimator.decide(20), 0);
}

/// At one acceptance the estimate is the same whatever the length, as accepted by drafted is not.
#[test]
fn acceptance_does_not_depend_on_the_length() {
    for len in [2, 8, 16] {
        let mut estimator = Estimator::default();
        let mut sum = 0.0;
        for index in 0..2_000 {
            estimator.observe(WORLD.round(len, index));
            sum += estimator.acceptance();
        }
        let measured = sum / 2_000.0;
        assert!((measured - 0.8).abs() < 0.02, "{len}: {measured}");
    }
}

#[test]
fn a_distribution_that_is_needed_at_every_position_is_paid_for_without_drafts_too() {
    let round = |levels, draft| MeasuredRound {
        levels,
        nodes: levels,
        draft,
        verify: Some(Duration::from_millis(10)),
        ..MeasuredRound::default()
    };
    let mut estimator = Estimator::default().begin(0.0, false);
    assert_eq!(estimator.costs(), None);
    assert_eq!(estimator.decide(20), FIRST, "it cannot rest");
    estimator.observe(round(2, Some(Duration::from_millis(8))));
    estimator.observe(round(0, Some(Duration::from_millis(4))));
    let costs = estimator.costs().expect("both were measured");
    assert_eq!(costs.alone, costs.fixed);
}

/// Times of requests that were repeated tell nothing.
#[test]
fn a_round_without_times_changes_no_cost() {
    let mut estimator = Estimator::default();
    WORLD.serve(&mut estimator, 20, 100);
    let costs = estimator.costs();
    let untimed = MeasuredRound {
        draft: None,
        verify: None,
        ..WORLD.round(4, 0)
    };
    estimator.observe(untimed);
    let after = estimator.costs();
    assert_eq!(after, costs);
}

#[test]
fn wide_levels_cost_the_verifier_more() {
    let tree = |levels: u32| MeasuredRound {
        levels,
        nodes: 8 * levels,
        draft: Some(Duration::from_millis(u64::from(levels))),
        verify: Some(Duration::from_millis(u64::from(20 + 8 * levels + 1))),
        ..MeasuredRound::default()
    };
    let mut estimator = Estimator::default();
    estimator.observe_alone(SAMPLE, Some(Duration::from_millis(21) * SAMPLE));
    for levels in [2, 4, 3, 1, 5, 2, 4, 6, 3, 2] {
        estimator.observe(tree(levels));
    }
    let costs = estimator.costs().expect("both were measured");
    // 1 ms of drafting and 8 scored nodes of 1 ms.
    assert!((costs.per_token - 0.009).abs() < 0.001, "{costs:?}");
}

/// The price of a round is all that lies between two verdicts, as that of a token of the target alone is all between two
/// tokens.
#[test]
fn what_lies_between_rounds_is_a_part_of_their_cost() {
    let ms = Duration::from_millis;
    let round = MeasuredRound {
        levels: 2,
        nodes: 2,
        accepted: 2,
        draft: Some(ms(4)),
        verify: Some(ms(10)),
        ..MeasuredRound::default()
    };
    let costs = |between| {
        let mut estimator = Estimator::default();
        estimator.observe_alone(SAMPLE, Some(ms(8) * SAMPLE));
        for _ in 0..40 {
            estimator.observe(MeasuredRound { between, ..round });
        }
        let gain = estimator.measured_gain().expect("both were measured");
        (estimator.costs().expect("both were measured"), gain)
    };
    let (none, gain) = costs(None);
    assert!((gain - 24.0 / 14.0).abs() < 1e-9, "{gain}");
    let (some, gain) = costs(Some(ms(6)));
    assert!((gain - 24.0 / 20.0).abs() < 1e-9, "{gain}");
    assert!((some.fixed - none.fixed - 6e-3).abs() < 1e-9);
    assert_eq!((some.per_token, some.alone), (none.per_token, none.alone));
    // A client that does not read makes no round dearer.
    let (unread, gain) = costs(Some(ms(15)));
    assert_eq!(unread, none);
    assert!((gain - 24.0 / 14.0).abs() < 1e-9, "{gain}");
}
