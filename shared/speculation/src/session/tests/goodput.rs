//! Draft lengths that follow what is measured.

use super::*;
use crate::goodput::{Estimator, RoundCosts};

const MS: Duration = Duration::from_millis(1);

/// Peers that take their time, and accept the first `accepts` tokens of every block.
#[derive(Clone, Copy)]
struct World {
    draft: fn(u32) -> u32,
    verify: fn(u32) -> u32,
    /// Each token that the target decodes alone.
    decode: u32,
    /// What each peer takes besides for the first answer.
    prefill: u32,
    /// What the drafter takes besides for each token that was decoded without it.
    catch_up: u32,
    accepts: u32,
    /// Milliseconds that handing out the tokens of an answer takes.
    emit: u32,
}

/// What became of a request.
struct Ran {
    /// Draft tokens of each round that was verified.
    lens: Vec<u32>,
    /// Tokens asked for each time the target was to decode alone.
    rests: Vec<u32>,
    session: Session,
}

impl Ran {
    fn costs(&self) -> RoundCosts {
        let costs = self.session.goodput().and_then(Estimator::costs);
        costs.expect("both peers were measured")
    }
}

impl World {
    fn run(&self, goodput: Option<Estimator>, most: u32, max_tokens: u32) -> Ran {
        let config = SessionConfig {
            goodput,
            carries_layers: false,
            ..limits(Plan::Speculative, most, max_tokens, 100)
        };
        let mut now = NOW;
        let mut session = Session::new(config);
        let (mut lens, mut rests) = (Vec::new(), Vec::new());
        let mut prefill = [self.prefill; 2];
        let mut missed = 0;
        while let Some(action) = session.poll(now) {
            let Action::Send { round, request, .. } = action else {
                if matches!(action, Action::Emit(_)) {
                    now += self.emit * MS;
                }
                continue;
            };
            now += std::mem::take(&mut prefill[request.peer() as usize]) * MS;
            let input = match request {
                Request::Draft { max_tokens, .. } => {
                    now += (self.draft)(max_tokens) * MS;
                    now += std::mem::take(&mut missed) * self.catch_up * MS;
                    drafted(round, &vec![10; max_tokens as usize])
                }
                Request::Verify { drafts, .. } => {
                    let len = drafts.len() as u32;
                    lens.push(len);
                    now += (self.verify)(len + 1) * MS;
                    let accepted = len.min(self.accepts);
                    let mut emitted = vec![10; accepted as usize];
                    emitted.push(11);
                    let last = if accepted < len {
                        LastToken::Recovered
                    } else {
                        LastToken::Bonus
                    };
                    verified(round, &emitted, accepted as usize, last)
                }
                Request::Decode { max_tokens } => {
                    rests.push(max_tokens);
                    missed += max_tokens;
                    for _ in 0..max_tokens {
                        now += self.decode * MS;
                        let at = session.output().len() as u32;
                        session.handle(decoded(round, at, &[11]), now);
                    }
                    continue;
                }
                Request::Score { .. } => panic!("nobody wants scores"),
            };
            session.handle(input, now);
        }
        Ran {
            lens,
            rests,
            session,
        }
    }
}

/// A drafter that costs next to nothing, accepted for 6 tokens.
const QUICK: World = World {
    draft: |len| 1 + len,
    verify: |scored| 50 + scored,
    decode: 51,
    prefill: 0,
    catch_up: 50,
    accepts: 6,
    emit: 0,
};

/// A drafter slower than the target, and never right.
const SLOW: World = World {
    draft: |len| 100 * len,
    verify: |_| 10,
    decode: 4,
    prefill: 0,
    catch_up: 50,
    accepts: 0,
    emit: 0,
};

#[test]
fn lengths_follow_the_times_between_a_request_and_its_answer() {
    let quick = QUICK.run(Some(Estimator::default()), 20, 2_000);
    assert_eq!((quick.lens[0], quick.rests[0]), (4, 24));
    let settled = &quick.lens[40..quick.lens.len() - 20];
    // The seventh token of a draft is never accepted: now and then it is tried again.
    assert!(
        settled.iter().all(|len| (6..=8).contains(len)),
        "{settled:?}"
    );
    let slow = SLOW.run(Some(Estimator::default()), 20, 400);
    let steps = quick.lens.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
    // The last rounds have less room than that.
    let steps = steps.take(quick.lens.len() - 20).max();
    assert!(steps <= Some(2), "{:?}", quick.lens);
    for ran in [&quick, &slow] {
        assert_eq!(
            ran.session.emitted() as u32,
            ran.session.statistics().emitted
        );
        let (spent, came_to) = balance(ran.session.statistics());
        assert_eq!(spent, came_to);
    }
    // A length that is given does not move.
    let fixed = QUICK.run(None, 5, 100);
    assert!(fixed.lens[..10].iter().all(|&len| len == 5));
    assert!(fixed.session.goodput().is_none());
}

/// Where drafting does not pay the target decodes many tokens in one go, more and more of them between
/// two tries, and what it takes for each is measured.
#[test]
fn a_rest_is_decoded_in_one_go() {
    let ran = SLOW.run(Some(Estimator::default()), 20, 2_000);
    assert!(ran.lens.len() <= 20, "{:?}", ran.lens);
    // The first rest measures the target alone. After a failed try a rest has the tokens of four seconds.
    assert_eq!(ran.rests[..2], [24, 1_000]);
    let statistics = ran.session.statistics();
    assert_eq!(statistics.fallback_tokens, 0, "the drafter is there");
    let decoded = ran.rests.iter().sum::<u32>();
    assert_eq!(statistics.target_forwards, ran.lens.len() as u32 + decoded);
    let costs = ran.costs();
    assert!((costs.alone - 0.004).abs() < 1e-6, "{costs:?}");
    // What the drafter missed in a rest, and catches up with, is no cost of drafting either.
    assert!((costs.per_token - 0.1).abs() < 0.005, "{costs:?}");
}

/// A rest needs no distribution of the drafter; where every token does, there is none.
#[test]
fn where_every_token_needs_the_draft_distribution_nothing_is_decoded_alone() {
    let config = SessionConfig {
        goodput: Some(Estimator::default()),
        depends_on_draft: true,
        ..config(Plan::Speculative)
    };
    let mut session = Session::new(config);
    let mut now = NOW;
    let mut empty = 0;
    while let Some(action) = session.poll(now) {
        let Action::Send { round, request, .. } = action else {
            continue;
        };
        match request {
            Request::Draft { max_tokens, .. } => {
                now += 100 * MS * (1 + max_tokens);
                session.handle(drafted(round, &vec![10; max_tokens as usize]), now);
            }
            Request::Verify { drafts, .. } => {
                empty += u32::from(drafts.is_empty());
                now += MS;
                session.handle(verified(round, &[11], 0, LastToken::Recovered), now);
            }
            Request::Decode { .. } => panic!("a token without the draft distribution"),
            Request::Score { .. } => panic!("nobody wants scores"),
        }
    }
    assert!(empty > 0, "drafting did not pay");
}

/// What a peer takes for the prompt is no cost of a round.
#[test]
fn the_prompt_is_not_timed() {
    let first = World {
        prefill: 3_000,
        ..QUICK
    };
    let ran = first.run(Some(Estimator::default()), 20, 400);
    let costs = ran.costs();
    assert!((costs.fixed - 0.052).abs() < 0.003, "{costs:?}");
    assert!((costs.per_token - 0.002).abs() < 0.0007, "{costs:?}");
}

#[test]
fn the_most_is_kept_and_so_are_the_times() {
    let ran = QUICK.run(Some(Estimator::default()), 5, 500);
    assert!(ran.lens.iter().all(|&len| len <= 5));
    let costs = ran.costs();
    // 50 + 1 of the verifier and 1 of the drafter; 1 and 1 for each token. In seconds.
    assert!((costs.fixed - 0.052).abs() < 0.003, "{costs:?}");
    assert!((costs.per_token - 0.002).abs() < 0.0007, "{costs:?}");
    assert!((costs.alone - 0.051).abs() < 1e-6, "{costs:?}");
}

#[test]
fn the_next_request_goes_on_from_what_was_measured() {
    let first = QUICK.run(Some(Estimator::default()), 20, 1_000);
    let known = first.session.goodput().map(|known| known.begin(0.0, true));
    let settled = first.lens[first.lens.len() - 10];
    let second = QUICK.run(known, 20, 200);
    assert!((6..=8).contains(&settled), "{settled}");
    // The length begins at four, grows by at most two, and there is no rest before.
    assert_eq!((second.lens[0], second.rests.len()), (6, 0));
}

/// The time of a request that was repeated is the time of a failure.
#[test]
fn repeated_requests_are_not_timed() {
    for retried in [Peer::Drafter, Peer::Verifier] {
        // The target alone was measured: drafting is tried next.
        let mut known = Estimator::default();
        known.observe_alone(24, Some(4 * MS));
        let mut session = begin(SessionConfig {
            goodput: Some(known),
            ..config(Plan::Speculative)
        });
        let answer = |session: &mut Session, round, peer, input| {
            // The first answers hold the prompt.
            if peer == retried && round == 2 {
                on(session, failed(round, peer, true));
                resumed(session);
            }
            session.handle(input, NOW + 10 * MS);
            actions(session);
        };
        for round in [1, 2] {
            let draft = drafted(round, &[10, 11, 12, 13]);
            answer(&mut session, round, Peer::Drafter, draft);
            let verdict = verified(round, &[10, 20], 1, LastToken::Recovered);
            answer(&mut session, round, Peer::Verifier, verdict);
        }
        let estimator = session.goodput().expect("lengths follow it");
        assert_eq!(estimator.costs(), None, "{retried:?} was not timed");
        assert!(estimator.acceptance() < 0.7, "but what it decided counts");
    }
}

/// While tokens are handed out no peer computes for the request, and that time is a round's too.
#[test]
fn handing_out_tokens_is_a_part_of_a_round() {
    let emitting = World { emit: 5, ..QUICK };
    let costs = emitting.run(Some(Estimator::default()), 5, 500).costs();
    assert!((costs.fixed - 0.057).abs() < 0.003, "{costs:?}");
    assert!((costs.alone - 0.051).abs() < 1e-6, "{costs:?}");
}
