//! Draft lengths that follow what is measured, of a drafter that finds few tokens worth drafting, as Max-Gram does.

use super::*;
use crate::goodput::Estimator;

const MS: Duration = Duration::from_millis(1);

/// What became of a request.
struct Ran {
    /// Tokens asked for each time the target was to decode alone.
    alone: Vec<u32>,
    /// How many of them came before the last block that was verified.
    before_last: usize,
    session: Session,
}

/// A request of which only the drafts that `is_worth` says have a token, which is accepted. `forwards` are told with
/// each draft.
fn run(goodput: Estimator, forwards: &[u32], is_worth: fn(u32) -> bool) -> Ran {
    let mut session = Session::new(SessionConfig {
        goodput: Some(goodput),
        ..limits(Plan::Speculative, 6, 200, 100)
    });
    let (mut draft, mut alone, mut before_last, mut now) = (0, Vec::new(), 0, NOW);
    while let Some(action) = session.poll(now) {
        let Action::Send { round, request, .. } = action else {
            continue;
        };
        now += MS;
        match request {
            Request::Draft { .. } => {
                draft += 1;
                let tokens: &[TokenId] = if is_worth(draft) { &[10] } else { &[] };
                let block = DraftBlock {
                    stop: DraftStop::Policy,
                    forwards: forwards.to_vec(),
                    ..block(tokens)
                };
                session.handle(Input::Drafted { round, block }, now);
            }
            Request::Verify { drafts, .. } => {
                assert_eq!(drafts.len(), 1, "an empty draft was verified");
                before_last = alone.len();
                now += 51 * MS;
                session.handle(verified(round, &[10, 11], 1, LastToken::Bonus), now);
            }
            Request::Decode { max_tokens } => {
                alone.push(max_tokens);
                for _ in 0..max_tokens {
                    now += 51 * MS;
                    let at = session.output().len() as u32;
                    session.handle(decoded(round, at, &[11]), now);
                }
            }
            Request::Score { .. } => panic!("nobody wants scores"),
        }
    }
    let statistics = session.statistics();
    assert_eq!(statistics.rested_tokens, alone.iter().sum::<u32>());
    assert_eq!(statistics.fallback_tokens, 0);
    let (spent, came_to) = balance(statistics);
    assert_eq!(spent, came_to);
    Ran {
        alone,
        before_last,
        session,
    }
}

impl Ran {
    fn measured(&self) -> &Estimator {
        self.session.goodput().expect("lengths follow")
    }
}

/// Then the target goes on alone, for longer if that happens again.
#[test]
fn where_nothing_is_worth_drafting_the_target_decodes_a_few_tokens() {
    let known = run(Estimator::default(), &[0], |_| true);
    let known = known.measured().begin(0.0, true);
    let ran = run(known, &[0], |draft| draft == 4);
    assert_eq!(ran.before_last, 3);
    assert_eq!(ran.alone[..8], [4, 8, 16, 4, 8, 16, 32, 64]);
}

/// Between them the target decodes alone. A draft model then has tokens to catch up with, so that its time is none of a
/// round's; who drafts without a forward has not.
#[test]
fn drafts_far_apart_are_timed_if_nothing_was_to_be_caught_up_with() {
    let every_other = |draft: u32| draft.is_multiple_of(2);
    let free = run(Estimator::default(), &[0], every_other);
    let costs = free.measured().costs().expect("rounds were measured");
    assert!((costs.alone - 0.051).abs() < 1e-6, "{costs:?}");
    let modelled = run(Estimator::default(), &[1], every_other);
    assert_eq!(modelled.measured().costs(), None);
    // The first answer includes reading the prompt, whoever drafts.
    let first = run(Estimator::default(), &[0], |draft| draft == 1);
    assert_eq!(first.measured().costs(), None);
}
