//! How far back a window lets a token see, in chains and across trees.

use super::*;

const WINDOW: usize = 5;

/// Two layers with a window: a token is told of those up to two windows back, less one each.
fn windowed(format: WeightFormat) -> Decoder {
    let config = ModelConfig {
        architecture: Architecture::Mistral,
        window: Some(WINDOW),
        windowed: vec![true; 2],
        ..config()
    };
    load(config, format)
}

const REACH: usize = 2 * (WINDOW - 1);

#[test]
fn a_token_reaches_as_far_as_windows_let_it() {
    for format in WeightFormat::ALL {
        let mut model = windowed(format);
        let tokens = text(30, 8);
        let (logits, _) = fresh(&mut model, &tokens);
        for changed in [0, 3, 11] {
            let mut other = tokens.clone();
            other[changed] = (other[changed] + 1) % 101;
            let (found, _) = fresh(&mut model, &other);
            for (row, (a, b)) in logits.chunks(101).zip(found.chunks(101)).enumerate() {
                let reached = row >= changed && row - changed <= REACH;
                assert_eq!(a != b, reached, "{format}: token {changed} at row {row}");
            }
        }
    }
}

/// A deep tree that branches: node n has the children 2 n + 1 and 2 n + 2, four levels of them, behind a
/// chain of twelve nodes.
#[test]
fn the_window_of_a_node_counts_its_ancestors() {
    let chain = (0..12_u32).map(|node| node.checked_sub(1));
    let bushy = (0..15_u32).map(|node| Some(if node == 0 { 11 } else { 12 + (node - 1) / 2 }));
    let parents: Vec<Option<u32>> = chain.chain(bushy).collect();
    let path = |node: usize| -> Vec<usize> {
        let next = |node: &usize| parents[*node].map(|parent| parent as usize);
        let mut path: Vec<usize> = std::iter::successors(Some(node), next).collect();
        path.reverse();
        path
    };
    for format in WeightFormat::ALL {
        let mut model = windowed(format);
        for trunk in [1, 3, 16, 20] {
            let tokens = text(trunk + parents.len(), 9);
            let mut cache = model.new_cache();
            let mut rows = Rows::default();
            let segment = Segment {
                cache: &mut cache,
                tokens: &tokens,
                parents: &parents,
                scored_from: trunk,
            };
            model.forward(&mut [segment], &mut rows).unwrap();
            for node in 0..parents.len() {
                let mut context = tokens[..trunk].to_vec();
                context.extend(path(node).into_iter().map(|node| tokens[trunk + node]));
                let (alone, _) = fresh(&mut model, &context);
                let last = &alone[alone.len() - 101..];
                assert!(
                    rows.row(node) == last,
                    "{format}: node {node} after {trunk}"
                );
            }
        }
    }
}
