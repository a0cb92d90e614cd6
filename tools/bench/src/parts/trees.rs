//! The forward of a token tree, the move of its accepted path included, against the forward of a
//! chain of as many tokens.

use super::PartsArgs;
use super::row::PartRow;
use super::subjects::Subjects;
use crate::timing::in_turn;
use outrider::progress;

/// Nodes of every tree.
const NODES: usize = 16;

/// The cost of a tree may be this multiple of a chain's.
const GOAL: f64 = 1.3;

/// A shape, and the path of it that is kept.
struct KeptShape {
    what: &'static str,
    parents: Vec<Option<u32>>,
    path: Vec<u32>,
}

fn shapes() -> [KeptShape; 3] {
    let chain = KeptShape {
        what: "chain",
        parents: Vec::new(),
        path: Vec::new(),
    };
    // Four levels; the first node of each leads to the next level. The last node of all is kept, so
    // that something has to be moved.
    let comb = KeptShape {
        what: "tree, comb 4x4",
        parents: (0..NODES as u32)
            .map(|node| (node / 4).checked_sub(1).map(|level| 4 * level))
            .collect(),
        path: vec![0, 4, 8, 15],
    };
    // Two children a node: 2, 4, 8, and two more.
    let binary = KeptShape {
        what: "tree, binary",
        parents: (0..NODES as u32)
            .map(|node| (node / 2).checked_sub(1))
            .collect(),
        path: vec![1, 5, 13],
    };
    [chain, comb, binary]
}

/// Measures every model at every context.
pub(super) fn rows(args: &PartsArgs, subjects: &mut Subjects) -> anyhow::Result<Vec<PartRow>> {
    let shapes = shapes();
    let mut rows = Vec::new();
    for subject in subjects.all()? {
        let tokens = subject.tokens(NODES);
        for &context in &args.contexts {
            progress::show(&format!("trees: {}, {context} tokens", subject.name))?;
            let mut cache = subject.cache(context, NODES)?;
            let figures = in_turn(args.repeats, &shapes, |shape| {
                subject.verify(&mut cache, &tokens, &shape.parents, &shape.path)
            })?;
            let measured = shapes.iter().zip(&figures).skip(1);
            rows.extend(measured.map(|(shape, of)| PartRow {
                on: subject.name.clone(),
                context,
                what: format!("{} of {NODES}", shape.what),
                baseline: format!("chain of {NODES}"),
                us: of.us,
                baseline_us: figures[0].us,
                ratio: of.ratio,
                goal: Some(GOAL),
            }));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use speculation::tree_paths::TreePaths;

    use super::*;

    #[test]
    fn each_shape_holds_the_path_that_is_kept() {
        let [chain, trees @ ..] = shapes();
        assert!(chain.parents.is_empty());
        for (shape, depth) in trees.iter().zip([4, 4]) {
            let mut paths = TreePaths::default();
            paths.read(&shape.parents, NODES).expect("a tree");
            assert_eq!((paths.len(), paths.depth()), (NODES, depth));
            assert!(paths.holds(&shape.path), "{}", shape.what);
        }
    }
}
