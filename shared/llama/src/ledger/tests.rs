use super::*;

fn append(
    ledger: &mut CellLedger,
    token: u32,
    sequences: &[SequenceId],
) -> Result<usize, BadEntry> {
    ledger.append(&BatchToken {
        token,
        sequences,
        is_scored: false,
    })
}

#[test]
fn a_cell_is_counted_once_and_freed_with_its_last_holder() {
    let mut ledger = CellLedger::new(8, 10);
    let [base, leaf] = [(); 2].map(|()| ledger.take().unwrap());
    for position in 0..3 {
        assert_eq!(append(&mut ledger, 1, &[base]), Ok(position));
    }
    assert_eq!(ledger.copy(base, leaf, 2), Ok(0..2));
    assert_eq!(ledger.copy(base, leaf, 3), Ok(2..3));
    assert_eq!((ledger.used(), ledger.len(leaf)), (3, 3));
    assert_eq!(append(&mut ledger, 2, &[base, leaf]), Ok(3));
    assert_eq!(append(&mut ledger, 3, &[leaf]), Ok(4));
    assert!(ledger.truncate(base, 0) && !ledger.truncate(base, 0));
    assert_eq!(ledger.used(), 5);
    ledger.give_back(leaf);
    assert!(ledger.is_empty());
}

#[test]
fn what_llama_cpp_would_take_wrongly_is_refused_by_name() {
    let mut ledger = CellLedger::new(3, 10);
    let [one, other] = [(); 2].map(|()| ledger.take().unwrap());
    let vocab_size = 10;
    let token = 10;
    assert_eq!(
        append(&mut ledger, 10, &[one]),
        Err(BadEntry::Token { token, vocab_size })
    );
    assert_eq!(append(&mut ledger, 1, &[]), Err(BadEntry::Sequences));
    assert_eq!(
        append(&mut ledger, 1, &[one, one]),
        Err(BadEntry::Sequences)
    );
    append(&mut ledger, 1, &[one]).unwrap();
    assert_eq!(
        append(&mut ledger, 1, &[one, other]),
        Err(BadEntry::Diverged)
    );
    append(&mut ledger, 1, &[other]).unwrap();
    // As long, and not the same.
    assert_eq!(
        append(&mut ledger, 1, &[one, other]),
        Err(BadEntry::Diverged)
    );
    assert_eq!(ledger.copy(one, other, 1), Err(BadEntry::Diverged));
    append(&mut ledger, 1, &[one]).unwrap();
    let mark = ledger.mark();
    assert_eq!(
        append(&mut ledger, 1, &[one]),
        Err(BadEntry::Full { cells: 3 })
    );
    assert!(ledger.rewind(&mark).is_empty());
}

#[test]
fn a_rewound_ledger_is_as_it_was() {
    let mut ledger = CellLedger::new(4, 10);
    let [one, other] = [(); 2].map(|()| ledger.take().unwrap());
    append(&mut ledger, 1, &[one]).unwrap();
    let mark = ledger.mark();
    append(&mut ledger, 1, &[one]).unwrap();
    append(&mut ledger, 1, &[other]).unwrap();
    assert_eq!(ledger.rewind(&mark), [(one, 1), (other, 0)]);
    assert_eq!(
        (ledger.used(), ledger.len(one), ledger.len(other)),
        (1, 1, 0)
    );
}

#[test]
fn all_sequences_can_be_taken_and_no_more() {
    let mut ledger = CellLedger::new(1, 1);
    let mut taken: Vec<usize> = (0..SEQUENCES)
        .map(|_| ledger.take().unwrap().index())
        .collect();
    assert_eq!(ledger.take(), None);
    taken.sort_unstable();
    assert_eq!(taken, (0..SEQUENCES).collect::<Vec<_>>());
}
