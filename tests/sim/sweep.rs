//! Random requests under random faults. `OUTRIDER_SWEEP=full` tries many more, and
//! `OUTRIDER_SWEEP=<seed>` that one again.

use std::ops::Range;

use speculation::session::{FinishReason, Peer};
use speculation::verification::Verification;

use crate::case::Case;
use crate::faults::Faults;
use crate::simulation::simulate;

fn seeds() -> Range<u64> {
    match std::env::var("OUTRIDER_SWEEP").as_deref() {
        Err(_) => 0..2_000,
        Ok("full") => 0..100_000,
        Ok(seed) => {
            let seed = seed
                .parse()
                .expect("OUTRIDER_SWEEP is neither full nor a seed");
            seed..seed + 1
        }
    }
}

/// What the sweep met with.
#[derive(Debug, Default)]
struct Met {
    stop: u32,
    length: u32,
    failed: u32,
    deadline: u32,
    retries: u32,
    fallbacks: u32,
    needs: u32,
}

#[test]
fn random_requests_under_random_faults_are_lossless_and_end() {
    let seeds = seeds();
    let is_sweep = seeds.end - seeds.start > 1;
    let mut met = Met::default();
    for seed in seeds {
        let case = Case::random(seed);
        let record = simulate(&case, &Faults::random(seed));
        match case.method.verification {
            Verification::Coupled => record.assert_lossless(),
            Verification::Token => record.assert_orderly(),
        }
        match record.end().1 {
            FinishReason::Stop => met.stop += 1,
            FinishReason::Length => met.length += 1,
            FinishReason::DeadlineExceeded => met.deadline += 1,
            FinishReason::Failed { peer, .. } => {
                assert_eq!(*peer, Peer::Verifier);
                met.failed += 1;
            }
            FinishReason::Cancelled => panic!("nobody cancelled it"),
        }
        met.retries += record.statistics.retries;
        met.fallbacks += record.statistics.fallbacks.len() as u32;
        met.needs += record.needs;
    }
    // A sweep in which nothing happens proves nothing.
    let Met {
        stop,
        length,
        failed,
        deadline,
        retries,
        fallbacks,
        needs,
    } = met;
    let least = [stop, length, failed, deadline, retries, fallbacks, needs]
        .into_iter()
        .min();
    assert!(!is_sweep || least >= Some(50), "{met:?}");
}
