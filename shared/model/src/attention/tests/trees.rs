//! Rows of trees, in the bits of their paths.

use super::*;

/// Tries `paths` of nodes whose first slot is `root`, in all formats, with `windows`, on numbers of `threads`.
fn nodes_have_the_bits_of(
    paths: &[&[u32]],
    root: usize,
    slots: usize,
    windows: [Option<usize>; 3],
    threads: &[usize],
) {
    let head_dim = 64;
    let both = |format| windows.map(|window| (format, window));
    for (format, window) in KvFormat::ALL.into_iter().flat_map(both) {
        let cache = cache_in(format, slots, head_dim);
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
        for cpu in cpus(threads) {
            let found = attend_on(&cpu, &rows, scoring);
            assert!(found == expected, "{format} {window:?} {cpu:?}");
        }
    }
}

/// The tree begins at slot 60, so that it lies on two pages.
#[test]
fn a_node_has_the_bits_of_its_path() {
    let paths: [&[u32]; 6] = [&[0], &[1], &[1, 2], &[0, 3], &[1, 2, 9], &[0, 11]];
    nodes_have_the_bits_of(&paths, 60, 80, [None, Some(2), Some(30)], &[1]);
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
    let root = 2 * CHUNK - 3;
    let windows = [None, Some(4), Some(300)];
    nodes_have_the_bits_of(&paths, root, root + 100, windows, &[1, 2, 5]);
}
