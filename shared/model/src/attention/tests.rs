mod canonical;

use std::sync::Arc;

use self::canonical::canonical;
use super::*;
use speculation::simd::Level;

use crate::cache::{CpuCache, KvFormat, PagePool};
use crate::cpu::{Cpu, Threads};

const HEADS: usize = 6;
const KV_HEADS: usize = 2;

fn noise(i: usize) -> f32 {
    ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0
}

fn key(slot: usize, i: usize, head_dim: usize) -> f32 {
    noise(slot * KV_HEADS * head_dim + i)
}

fn value(slot: usize, i: usize, head_dim: usize) -> f32 {
    noise((1 << 20) + slot * KV_HEADS * head_dim + i)
}

fn pool(head_dim: usize, format: KvFormat) -> Arc<PagePool> {
    PagePool::new(KV_HEADS, head_dim, format)
}

/// A cache of `slots` slots, whose numbers are held in `format`.
fn cache_in(format: KvFormat, slots: usize, head_dim: usize) -> CpuCache {
    let mut cache = CpuCache::new(&pool(head_dim, format), [None]);
    cache.reserve(slots);
    let width = KV_HEADS * head_dim;
    for slot in 0..slots {
        let keys: Vec<f32> = (0..width).map(|i| key(slot, i, head_dim)).collect();
        let values: Vec<f32> = (0..width).map(|i| value(slot, i, head_dim)).collect();
        cache.layers[0].write(slot, &keys, &values);
    }
    cache
}

fn query(row: usize, head_dim: usize) -> Vec<f32> {
    (0..HEADS * head_dim)
        .map(|i| 3.0 * noise(i + 77 + row * 7919))
        .collect()
}

/// Rows of one segment, and what each sees.
struct Rows<'a> {
    cache: &'a CpuCache,
    views: Vec<View<'a>>,
}

impl Views for Rows<'_> {
    fn segments(&self) -> usize {
        1
    }

    fn rows(&self, _segment: usize) -> usize {
        self.views.len()
    }

    fn cache(&self, _segment: usize) -> &LayerCache {
        &self.cache.layers[0]
    }

    fn view(&self, _segment: usize, row: usize) -> View<'_> {
        self.views[row]
    }
}

fn rows<'a, 'v: 'a>(cache: &'a CpuCache, views: impl IntoIterator<Item = View<'v>>) -> Rows<'a> {
    let views: Vec<View<'v>> = views.into_iter().collect();
    Rows { cache, views }
}

fn sees(visible: usize) -> View<'static> {
    View {
        visible,
        branch: &[],
        bias: None,
    }
}

fn plain(head_dim: usize) -> AttentionScoring {
    AttentionScoring {
        scale: 1.0 / (head_dim as f32).sqrt(),
        softcap: None,
        window: None,
    }
}

fn attend(level: Level, rows: &Rows<'_>, scoring: AttentionScoring) -> Vec<f32> {
    let cpu = Cpu {
        level,
        ..Cpu::detect()
    };
    attend_on(&cpu, rows, scoring)
}

fn attend_on(cpu: &Cpu, rows: &Rows<'_>, scoring: AttentionScoring) -> Vec<f32> {
    let head_dim = rows.cache.layers[0].head_dim();
    let mut queries: Vec<f32> = (0..rows.views.len())
        .flat_map(|row| query(row, head_dim))
        .collect();
    let mut output = vec![f32::NAN; queries.len()];
    let attention = Attention {
        queries: SharedSlice::new(&mut queries),
        stride: HEADS * head_dim,
        views: rows,
        scoring,
    };
    attention.forward(cpu, &mut output, &mut AttentionScratch::default());
    output
}

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

/// Nodes of a tree that begins at slot 60, so that it lies on two pages.
#[test]
fn a_node_has_the_bits_of_its_path() {
    let paths: [&[u32]; 6] = [&[0], &[1], &[1, 2], &[0, 3], &[1, 2, 9], &[0, 11]];
    let head_dim = 64;
    let windows = [None, Some(2), Some(30)];
    let both = |format| windows.map(|window| (format, window));
    for (format, window) in KvFormat::ALL.into_iter().flat_map(both) {
        let cache = cache_in(format, 80, head_dim);
        let scoring = AttentionScoring {
            window,
            ..plain(head_dim)
        };
        let (mut views, mut expected) = (Vec::new(), Vec::new());
        for (row, &path) in paths.iter().enumerate() {
            let nodes = path.iter().map(|&node| 60 + node as usize);
            let slots: Vec<usize> = (0..60).chain(nodes).collect();
            expected.extend(canonical(format, row, &slots, head_dim, scoring));
            views.push(View {
                visible: slots.len(),
                branch: path,
                bias: None,
            });
        }
        let rows = rows(&cache, views);
        for level in Level::all() {
            let found = attend(level, &rows, scoring);
            assert!(found == expected, "{format} {window:?} {level:?}");
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
            for (threads, level) in [1, 2, 3, 7]
                .into_iter()
                .flat_map(|threads| Level::all().into_iter().map(move |level| (threads, level)))
            {
                let threads = Arc::new(Threads::new(threads));
                let found = attend_on(&Cpu { level, threads }, &rows, scoring);
                assert!(found == expected, "{format} {window:?} {start} {level:?}");
            }
        }
    }
}

/// A tree whose paths end in another chunk than they begin in, on several threads.
#[test]
fn a_node_of_a_long_sequence_has_the_bits_of_its_path() {
    let paths: [&[u32]; 5] = [
        &[0],
        &[0, 1, 5],
        &[2, 3, 4, 6, 70],
        &[2, 3, 90, 91, 92, 93],
        &[99],
    ];
    let (head_dim, root) = (64, 2 * CHUNK - 3);
    let windows = [None, Some(4), Some(300)];
    let both = |format| windows.map(|window| (format, window));
    for (format, window) in KvFormat::ALL.into_iter().flat_map(both) {
        let cache = cache_in(format, root + 100, head_dim);
        let scoring = AttentionScoring {
            window,
            ..plain(head_dim)
        };
        let (mut views, mut expected) = (Vec::new(), Vec::new());
        for (row, &path) in paths.iter().enumerate() {
            let nodes = path.iter().map(|&node| root + node as usize);
            let slots: Vec<usize> = (0..root).chain(nodes).collect();
            expected.extend(canonical(format, row, &slots, head_dim, scoring));
            views.push(View {
                visible: slots.len(),
                branch: path,
                bias: None,
            });
        }
        let rows = rows(&cache, views);
        for (threads, level) in [1, 2, 5]
            .into_iter()
            .flat_map(|threads| Level::all().into_iter().map(move |level| (threads, level)))
        {
            let threads = Arc::new(Threads::new(threads));
            let found = attend_on(&Cpu { level, threads }, &rows, scoring);
            assert!(found == expected, "{format} {window:?} {level:?}");
        }
    }
}

#[test]
fn later_positions_change_no_bit() {
    let both = |format| [22, 23].map(|visible| (format, visible));
    for (format, visible) in KvFormat::ALL.into_iter().flat_map(both) {
        let mut cache = cache_in(format, 40, 64);
        let attend = |cache: &CpuCache| {
            let rows = rows(cache, [sees(visible - 1), sees(visible)]);
            let of = |level| self::attend(level, &rows, plain(64));
            Level::all().into_iter().map(of).collect::<Vec<_>>()
        };
        let before = attend(&cache);
        cache.layers[0].write(visible, &[9.0; 128], &[9.0; 128]);
        cache.layers[0].write(31, &[9.0; 128], &[f32::NAN; 128]);
        assert_eq!(attend(&cache), before, "{format}");
        // The last row's own, too, is nothing to the row before it.
        cache.layers[0].write(visible - 1, &[f32::NAN; 128], &[f32::NAN; 128]);
        for (after, before) in attend(&cache).iter().zip(&before) {
            assert_eq!(after[..384], before[..384], "{format}");
        }
    }
}

/// The largest share of a chunk is what others are counted in: nothing has no inverse.
#[test]
fn values_of_nothing_come_to_nothing() {
    for format in KvFormat::ALL {
        let mut cache = cache_in(format, 40, 80);
        for (slot, value) in (0..40).zip([0.0, -0.0].into_iter().cycle()) {
            cache.layers[0].write(slot, &[0.5; 160], &[value; 160]);
        }
        for level in Level::all() {
            let found = attend(level, &rows(&cache, [sees(31), sees(40)]), plain(80));
            assert!(
                found.iter().all(|number| *number == 0.0),
                "{format} {level:?}"
            );
        }
    }
}

/// Too large for the format: not taken for a number, whatever is made of it.
#[test]
fn a_key_or_value_that_is_not_held_breaks_who_sees_it() {
    let too_large = [(KvFormat::F16, 1e6), (KvFormat::Q8_0, 1e7)];
    for (format, large) in too_large {
        for (key, value) in [(large, 0.5), (-large, 0.5), (0.5, large)] {
            let mut cache = cache_in(format, 40, 64);
            cache.layers[0].write(30, &[key; 128], &[value; 128]);
            for softcap in [None, Some(2.0)] {
                let rows = rows(&cache, [sees(30), sees(31)]);
                let scoring = AttentionScoring {
                    softcap,
                    ..plain(64)
                };
                for level in Level::all() {
                    let found = attend(level, &rows, scoring);
                    let (before, after) = found.split_at(HEADS * 64);
                    assert!(before.iter().all(|number| number.is_finite()));
                    let is_broken = after.iter().all(|number| number.is_nan());
                    assert!(is_broken, "{format} {key} {value} {level:?}");
                }
            }
        }
    }
}
