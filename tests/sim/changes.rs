//! Peers that are replaced, and replicas with other models: no output that two models generated is called exact.

use std::collections::HashMap;

use speculation::TokenId;
use speculation::session::{Input, Peer};

use crate::case::Case;
use crate::faults::Faults;
use crate::record::{Event, Record};
use crate::simulation::simulate;

/// Whether the session was told that `peer` changed.
fn was_told(record: &Record, peer: Peer) -> bool {
    let told = Event::Input(Input::Changed { peer });
    record.events.iter().any(|(_, event)| *event == told)
}

/// Runs coupled verification under random faults and replacements. If the session says that its output is exact, one of
/// the two target models generates all of that output, whatever happens to the drafter. If it says that the output is not
/// exact, the session was told that the verifier changed.
/// Whether one target model, that of `case` or the one that takes its place, writes all of `stream`.
pub(crate) fn is_of_one_model(case: &Case, stream: &[TokenId]) -> bool {
    let models = [case.model(Peer::Verifier), case.other_model()];
    models
        .iter()
        .any(|model| case.alone(model).starts_with(stream))
}

#[test]
fn an_answer_is_exact_only_if_one_target_model_wrote_all_of_it() {
    let mut met: HashMap<&str, u32> = HashMap::new();
    for seed in 0..2_000 {
        let case = Case {
            draft_len: 1 + (seed % 8) as u32,
            ..Case::new(seed, "coupled")
        };
        let faults = Faults::random(seed).replacing(seed);
        let record = simulate(&case, &faults);
        record.assert_orderly();
        let stream = record.stream();
        let is_of_one = is_of_one_model(&case, &stream);
        let what = match (record.is_exact, is_of_one) {
            (true, true) if was_told(&record, Peer::Drafter) => "exact, with another drafter",
            (true, true) => "exact",
            (false, false) => "of two models",
            (false, true) => "told, though it came to the same",
            (true, false) => panic!("seed {seed}: {stream:?} is of two models, and exact"),
        };
        assert_eq!(
            !record.is_exact,
            was_told(&record, Peer::Verifier),
            "seed {seed}"
        );
        *met.entry(what).or_default() += 1;
    }
    assert!(
        met.len() == 4 && met.values().all(|&times| times >= 20),
        "{met:?}"
    );
}

/// Where the output depends on the draft distribution, the session is told that a drafter changed, too.
#[test]
fn an_answer_that_two_draft_models_had_a_part_in_is_not_exact() {
    let mut told = 0;
    for seed in 0..2_000 {
        let case = Case {
            defers_below: Some(0.4),
            ..Case::new(seed, "rejection")
        };
        let record = simulate(&case, &Faults::none(seed).replacing(seed));
        let has_changed = Peer::ALL.into_iter().any(|peer| was_told(&record, peer));
        assert!(!(has_changed && record.is_exact), "seed {seed}");
        told += u32::from(was_told(&record, Peer::Drafter));
    }
    assert!(told >= 200, "{told}");
}
