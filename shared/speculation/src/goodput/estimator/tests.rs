//! Simulated requests with given times and acceptance.

use std::time::Duration;

use super::*;
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
        let costs = Costs {
            fixed: self.draft.0 + alone,
            per_token: self.draft.1 + self.verify.1,
            alone,
        };
        best_len((0..).map(|at| self.accept(at)), costs, most)
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
            let mut survival = 1.0;
            emitted += 1.0;
            for at in 0..len {
                survival *= self.accept(at);
                emitted += survival;
            }
            took += match len {
                0 => alone,
                len => self.draft.0 + alone + (self.draft.1 + self.verify.1) * f64::from(len),
            };
        }
        emitted / took
    }

    /// A round of `len` draft tokens, the `index`th of all.
    fn round(&self, len: u32, index: u32) -> Round {
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
        Round {
            levels: len,
            nodes: len,
            accepted,
            refused: accepted < len,
            draft: (len > 0)
                .then(|| took(self.draft, len, uniform(100)))
                .flatten(),
            verify: took(self.verify, len + 1, uniform(101)),
        }
    }

    /// Serves `tokens` as a session does, resting in one go and catching up after it, and says how many of
    /// them came of rounds with a draft. What was drafted before the token `hiccup` took a second more.
    fn serve(&self, estimator: &mut Estimator, tokens: u32, hiccup: u32) -> u32 {
        let second = Duration::from_secs(1);
        let alone = Duration::from_secs_f64((self.verify.0 + self.verify.1) / 1000.0);
        let (mut made, mut drafted) = (0, 0);
        let (mut follows, mut index) = (true, 0);
        while made < tokens {
            let len = estimator.decide(8);
            if len == 0 {
                let rest = estimator.rest();
                estimator.observe_alone(rest, Some(alone * rest));
                made += rest;
                follows = false;
                continue;
            }
            let mut round = self.round(len, index);
            let added = if made <= hiccup && hiccup < made + round.accepted + 1 {
                second
            } else {
                Duration::ZERO
            };
            round.draft = round.draft.map(|took| took + added).filter(|_| follows);
            estimator.observe(round);
            made += round.accepted + 1;
            drafted += round.accepted + 1;
            follows = true;
            index += 1;
        }
        drafted
    }

    /// The lengths of `rounds` rounds.
    fn run(&self, estimator: &mut Estimator, most: u32, rounds: u32) -> Vec<u32> {
        let lens = (0..rounds).map(|index| {
            let len = estimator.decide(most);
            estimator.observe(self.round(len, index));
            len
        });
        lens.collect()
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
        let lens = world.run(&mut Estimator::default(), 40, 160);
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
        let lens = world.run(&mut Estimator::default(), 40, 400);
        let best = world.throughput(&[world.best(40)]);
        let found = world.throughput(&lens);
        assert!(found > 0.95 * best, "{found} of {best}: {lens:?}");
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
        let lens = world.run(&mut Estimator::default(), 40, 400);
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
            let lens = world.run(&mut Estimator::default(), most, 100);
            assert!(lens.iter().all(|&len| len <= most));
            let steps = lens.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
            assert!(steps.max() <= Some(2), "{lens:?}");
        }
    }
    let estimator = Estimator::default();
    assert_eq!(estimator.next(9, 3), 3);
    assert_eq!(estimator.next(0, 20), 2);
    assert_eq!(estimator.next(20, 20), 18);
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
    let lens = slow.run(&mut estimator, 20, 1_000);
    let tries = lens[50..].iter().filter(|&&len| len > 0).count();
    assert!((2..=40).contains(&tries), "{tries}");
    assert!(lens[50..].iter().all(|&len| len <= 2), "{lens:?}");
    // Once it pays it is found out, and drafted for good.
    let lens = WORLD.run(&mut estimator, 20, 1_200);
    let best = f64::from(WORLD.best(20));
    let settled = mean(&lens[1_100..]);
    assert!((settled - best).abs() <= 2.0, "{settled} for {best}");
}

/// A machine that stands still for a second during one draft, the first of all or a later one.
#[test]
fn a_hiccup_does_not_end_drafting_for_long() {
    for hiccup in [0, 3, 10, 100] {
        for seed in 0..20 {
            let world = world(0.8, seed);
            let drafted = world.serve(&mut Estimator::default(), 1_000, hiccup);
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
        let lens = world.run(&mut Estimator::default(), 20, 2_000);
        let tries = lens[100..].iter().filter(|&&len| len > 0).count();
        assert!(tries <= 60, "{acceptance}: {tries}");
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
    slow.run(&mut estimator, 20, 40);
    while estimator.decide(20) == 0 {
        estimator.observe_alone(estimator.rest(), None);
    }
    for _ in 0..3 {
        estimator.observe(Round {
            draft: None,
            ..slow.round(2, 0)
        });
        assert_eq!(estimator.decide(20), 2);
    }
    estimator.observe(slow.round(2, 0));
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
    let round = |levels, draft| Round {
        levels,
        nodes: levels,
        draft,
        verify: Some(Duration::from_millis(10)),
        ..Round::default()
    };
    let mut estimator = Estimator::default();
    assert_eq!(estimator.costs(), None);
    estimator.observe(round(2, Some(Duration::from_millis(8))));
    estimator.observe(round(4, Some(Duration::from_millis(12))));
    let costs = estimator.costs().expect("both were measured");
    assert!(costs.alone < costs.fixed);
    estimator.observe(round(0, Some(Duration::from_millis(4))));
    let costs = estimator.costs().expect("both were measured");
    assert_eq!(costs.alone, costs.fixed);
}

/// Times of requests that were repeated tell nothing.
#[test]
fn a_round_without_times_changes_no_cost() {
    let mut estimator = Estimator::default();
    WORLD.run(&mut estimator, 20, 30);
    let costs = estimator.costs();
    let untimed = Round {
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
    let tree = |levels: u32| Round {
        levels,
        nodes: 8 * levels,
        draft: Some(Duration::from_millis(u64::from(levels))),
        verify: Some(Duration::from_millis(u64::from(20 + 8 * levels + 1))),
        ..Round::default()
    };
    let mut estimator = Estimator::default();
    for levels in [2, 4, 3, 1, 5, 2, 4, 6, 3, 2] {
        estimator.observe(tree(levels));
    }
    let costs = estimator.costs().expect("both were measured");
    // 1 ms of drafting and 8 scored nodes of 1 ms.
    assert!((costs.per_token - 0.009).abs() < 0.001, "{costs:?}");
}
