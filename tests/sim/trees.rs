//! Draft trees, and lengths that follow what is measured: the client sees the target's own output, and
//! more of it comes from the drafter.

use speculation::drafting::TreeShape;
use speculation::session::{Action, Origin, Peer, Request};

use crate::case::Case;
use crate::faults::{Fate, Faults, Trouble, Way};
use crate::message::Corruption;
use crate::record::Record;
use crate::simulation::simulate;

const TREES: [TreeShape; 3] = [
    TreeShape::Comb(2),
    TreeShape::Comb(8),
    TreeShape::Alternates(3),
];

/// The grid with trees of every shape, with and without lengths that follow what is measured.
fn grid() -> impl Iterator<Item = Case> {
    let choices = TREES
        .into_iter()
        .flat_map(|tree| [(tree, false), (tree, true)]);
    choices.flat_map(|(tree, goodput)| {
        let cases = Case::grid("coupled").into_iter();
        cases.map(move |case| Case {
            goodput,
            tree,
            ..case
        })
    })
}

/// Draft tokens accepted, and rounds with a draft.
fn accepted(record: &Record) -> [usize; 2] {
    let accepted = record.emitted().filter(|token| token.1 == Origin::Accepted);
    let rounds = record.statistics.per_step_drafted.len();
    [accepted.count(), rounds]
}

#[test]
fn trees_emit_the_targets_tokens_and_more_of_a_block_is_accepted() {
    let mut sums = [[0; 2]; 2];
    for case in grid().filter(|case| !case.goodput) {
        let chain = Case {
            tree: TreeShape::Chain,
            ..case.clone()
        };
        for (case, sum) in [chain, case].iter().zip(&mut sums) {
            let record = simulate(case, &Faults::none(1));
            record.assert_lossless();
            assert!(record.is_complete() && record.is_exact);
            for (sum, found) in sum.iter_mut().zip(accepted(&record)) {
                *sum += found;
            }
        }
    }
    let [[by_chains, chain_rounds], [by_trees, tree_rounds]] = sums;
    assert!(by_chains > 1_000, "{sums:?}");
    assert!(
        by_trees > by_chains && tree_rounds < chain_rounds,
        "{sums:?}"
    );
}

#[test]
fn faults_change_no_token() {
    let mut retries = 0;
    let strokes = [Peer::Drafter, Peer::Verifier].map(|peer| {
        [Way::Request, Way::Reply].map(|way| Faults::none(2).stroke(peer, way, 1, Fate::Lost))
    });
    let crashes = [Peer::Drafter, Peer::Verifier]
        .map(|peer| Faults::none(2).outage(peer, Trouble::Crash, 41..71));
    for faults in strokes.iter().flatten().chain(&crashes) {
        for case in grid() {
            let record = simulate(&case, faults);
            record.assert_lossless();
            assert!(record.is_complete(), "{:?}", record.end());
            retries += record.statistics.retries;
        }
    }
    assert!(retries > 1_000, "{retries}");
}

#[test]
fn falsified_trees_and_verdicts_never_reach_the_output() {
    for peer in [Peer::Drafter, Peer::Verifier] {
        for corruption in Corruption::ALL {
            let mut corrupted = 0;
            for case in grid() {
                let faults = Faults::none(3).stroke(peer, Way::Reply, 1, Fate::Corrupt(corruption));
                let record = simulate(&case, &faults);
                record.assert_lossless();
                corrupted += record.tally.corrupted;
            }
            assert!(corrupted > 50, "{peer:?} {corruption:?}: {corrupted}");
        }
    }
}

/// All peers here take the same time for every request, so a drafter is worth asking for long blocks
/// where they are accepted, and for short ones where they are not.
#[test]
fn measured_lengths_move_by_two_and_stay_within_the_limit() {
    let mut moved = 0;
    for case in grid().filter(|case| case.goodput) {
        let case = Case {
            max_tokens: 200,
            draft_len: 8,
            ..case
        };
        let record = simulate(&case, &Faults::none(4));
        record.assert_lossless();
        let lens = record
            .actions
            .iter()
            .filter_map(|(_, action)| match action {
                Action::Send {
                    base_len,
                    request: Request::Draft { max_tokens, .. },
                    ..
                } if base_len + 10 < case.max_tokens => Some(*max_tokens),
                _ => None,
            });
        let lens: Vec<_> = lens.collect();
        let steps: Vec<_> = lens
            .windows(2)
            .map(|pair| pair[0].abs_diff(pair[1]))
            .collect();
        assert!(steps.iter().all(|&step| step <= 2), "{lens:?}");
        assert!(lens.iter().all(|&len| len <= 8), "{lens:?}");
        moved += steps.iter().filter(|&&step| step > 0).count();
    }
    assert!(moved > 50, "{moved}");
}
