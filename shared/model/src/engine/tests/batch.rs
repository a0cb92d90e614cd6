//! Who gets how much of a forward.

use super::{toy::Toy, *};

#[test]
fn prompts_share_what_blocks_leave() {
    let bench = Bench::new(|config| {
        config.max_batch_tokens = bound(8);
        config.prefill_chunk = bound(5);
    });
    let gate = bench.hold();
    let block = bench.try_submit(1, &[2, 3], 0, 3).unwrap();
    let prompts = [bench.submit(2, &[1; 12], 11), bench.submit(3, &[1; 9], 8)];
    drop(gate);
    assert_eq!(sums(&block), [2.0, 5.0]);
    for sum in 6..9 {
        assert_eq!(sums(&block), [sum as f32]);
    }
    assert_eq!(sums(&prompts[0]), [12.0]);
    assert_eq!(sums(&prompts[1]), [9.0]);
    // The block's rows, and half of the rest for each prompt.
    let forwards = bench.forwards();
    assert_eq!(forwards[..2], [vec![1], vec![2, 3, 3]]);
    assert_eq!(forwards[2..], [vec![1, 4, 3], vec![1, 5, 2], vec![1, 1]]);
}

#[test]
fn blocks_take_turns_and_leave_a_quarter_to_a_prompt() {
    let bench = Bench::new(|config| config.max_batch_tokens = bound(8));
    let gate = bench.hold();
    let blocks: Vec<_> = (1..=4)
        .map(|slot| bench.submit(slot, &[1, 1, 1], 0))
        .collect();
    let prompt = bench.submit(5, &[1; 6], 5);
    // Larger than the bound, and yet it comes through.
    let large = bench.submit(6, &[1; 9], 0);
    drop(gate);
    for block in &blocks {
        assert_eq!(sums(block), [1.0, 2.0, 3.0]);
    }
    assert_eq!(sums(&prompt), [6.0]);
    assert_eq!(sums(&large).len(), 9);
    let expected = [vec![1], vec![3, 3, 2], vec![3, 3, 2], vec![2, 9]];
    assert_eq!(bench.forwards(), expected);
}

#[test]
fn who_waited_goes_first() {
    let bench = Bench::new(|config| config.max_batch_tokens = bound(3));
    let gate = bench.hold();
    let older = [1, 2].map(|slot| bench.try_submit(slot, &[1], 0, 9).unwrap());
    let younger = bench.submit(3, &[5, 6], 0);
    drop(gate);
    assert_eq!(sums(&younger), [5.0, 11.0]);
    for report in &older {
        assert_eq!(report.iter().count(), 10);
    }
    assert_eq!(bench.forwards()[..3], [vec![1], vec![1, 1], vec![1, 2]]);
}

#[test]
fn a_prompt_is_cut_by_how_long_its_forwards_take() {
    let toy = Toy {
        token_time: Duration::from_millis(5),
        ..Toy::default()
    };
    let bench = Bench::of(toy, |config| {
        config.prefill_time = Some(Duration::from_millis(50));
    });
    // A forward of all of it would take 200 ms.
    assert_eq!(sums(&bench.submit(1, &[1; 40], 39)), [40.0]);
    assert_eq!(bench.forwards(), [[16], [16], [8]]);
}

#[test]
fn what_a_sequence_has_to_catch_up_on_is_not_cut_to_save_time() {
    let toy = Toy {
        token_time: Duration::from_millis(5),
        ..Toy::default()
    };
    let bench = Bench::of(toy, |config| {
        config.prefill_time = Some(Duration::from_millis(50));
    });
    let gate = bench.hold();
    let behind: Vec<_> = (1..=4).map(|slot| bench.submit(slot, &[1; 8], 7)).collect();
    drop(gate);
    for report in &behind {
        assert_eq!(sums(report), [8.0]);
    }
    assert_eq!(bench.forwards(), [vec![1], vec![8; 4]]);
}
