//! Rows of a chain, in the canonical order's bits.

use super::*;

/// Whatever goes together: rows of a chain, any number of them, windows, soft caps, all levels.
#[test]
fn every_row_has_the_bits_of_the_canonical_order() {
    let sizes = |format| [10, 64, 80].map(|head_dim| (format, head_dim));
    for (format, head_dim) in KvFormat::ALL.into_iter().flat_map(sizes) {
        let cache = cache_in(format, 230, head_dim);
        let slots: Vec<usize> = (0..230).collect();
        for (window, softcap) in [
            (None, None),
            (Some(1), None),
            (Some(7), Some(2.0)),
            (Some(70), None),
        ] {
            let scoring = AttentionScoring {
                softcap,
                window,
                ..plain(head_dim)
            };
            for (start, count) in [(0, 3), (14, 5), (63, 9), (100, 1), (120, 110)] {
                let seen = start + 1..start + count + 1;
                let expected: Vec<f32> = seen
                    .clone()
                    .enumerate()
                    .flat_map(|(row, visible)| {
                        canonical(format, row, &slots[..visible], head_dim, scoring)
                    })
                    .collect();
                let rows = rows(&cache, seen.map(sees));
                for level in Level::all() {
                    let found = attend(level, &rows, scoring);
                    let what = format!("{format} {head_dim} {window:?} {start}+{count} {level:?}");
                    assert!(found == expected, "{what}");
                }
            }
        }
    }
}

/// Several chunks, cut among any number of threads; a window that begins in one of them, a chunk that only the
/// last rows reach.
#[test]
fn long_rows_have_the_bits_of_the_canonical_order_on_any_number_of_threads() {
    let (head_dim, seen) = (64, 3 * CHUNK + 40);
    let slots: Vec<usize> = (0..seen).collect();
    for format in KvFormat::ALL {
        let cache = cache_in(format, seen, head_dim);
        for (window, start) in [
            (None, seen - 1),
            (None, 3 * CHUNK - 4),
            (Some(600), seen - 5),
        ] {
            let scoring = AttentionScoring {
                window,
                ..plain(head_dim)
            };
            let visible = start + 1..(start + 6).min(seen) + 1;
            let expected: Vec<f32> = (visible.clone().enumerate())
                .flat_map(|(row, visible)| {
                    canonical(format, row, &slots[..visible], head_dim, scoring)
                })
                .collect();
            let rows = rows(&cache, visible.map(sees));
            for cpu in cpus(&[1, 2, 3, 7]) {
                let found = attend_on(&cpu, &rows, scoring);
                assert!(found == expected, "{format} {window:?} {start} {cpu:?}");
            }
        }
    }
}
