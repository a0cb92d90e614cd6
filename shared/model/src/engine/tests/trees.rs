//! Trees through the engine, on the model whose rows are a hash of the whole context.

use outrider_tests::toy::ToyModel;
use speculation::TokenId;

use super::*;

const VOCAB: usize = 60;
/// Two branches of two, and a third child of the first node, in no tidy order.
const TREE: [(TokenId, Option<u32>); 5] = [
    (10, None),
    (11, None),
    (12, Some(1)),
    (13, Some(0)),
    (14, Some(0)),
];

struct Trees {
    handle: EngineHandle,
    model: ToyModel,
}

impl Trees {
    fn new(change: impl FnOnce(&mut EngineConfig)) -> Self {
        let mut config = EngineConfig::default();
        change(&mut config);
        let model = ToyModel::new(5, VOCAB);
        let (handle, _thread) = spawn(model.clone(), config, "toy").unwrap();
        Self { handle, model }
    }

    fn submit(&self, slot: u64, (task, report): (Score, Receiver<Report>)) -> Receiver<Report> {
        self.handle.try_submit(SlotId(slot), task).unwrap();
        report
    }

    /// The tree after `trunk`, scored from its last token on.
    fn tree(&self, slot: u64, trunk: &[TokenId]) -> Receiver<Report> {
        self.submit(slot, tree_after(trunk))
    }

    /// These nodes after `trunk`, scored from node `from` on.
    fn nodes(
        &self,
        slot: u64,
        trunk: &[TokenId],
        nodes: &[(TokenId, Option<u32>)],
        from: usize,
    ) -> Receiver<Report> {
        let (mut task, report) = Score::rows(trunk);
        task.scored_from = trunk.len() + from;
        task.tokens.extend(nodes.iter().map(|(token, _)| token));
        task.parents = nodes.iter().map(|(_, parent)| *parent).collect();
        self.submit(slot, (task, report))
    }

    /// The tokens of a chain, scored from the last on.
    fn chain(&self, slot: u64, tokens: &[TokenId]) -> Receiver<Report> {
        self.submit(slot, Score::rows(tokens))
    }

    /// Returns the model's rows after each of these contexts.
    fn rows(&self, contexts: &[Vec<TokenId>]) -> Vec<f32> {
        let mut rows = vec![0.0; contexts.len() * VOCAB];
        for (context, row) in contexts.iter().zip(rows.chunks_mut(VOCAB)) {
            self.model.logits(context, row);
        }
        rows
    }

    /// The rows of the token before the tree and of its nodes.
    fn tree_rows(&self, trunk: &[TokenId]) -> Vec<f32> {
        let paths: [&[TokenId]; 6] = [&[], &[10], &[11], &[11, 12], &[10, 13], &[10, 14]];
        self.rows(&paths.map(|path| [trunk, path].concat()))
    }
}

fn tree_after(trunk: &[TokenId]) -> (Score, Receiver<Report>) {
    let (mut task, report) = Score::rows(trunk);
    task.tokens.extend(TREE.map(|(token, _)| token));
    task.parents = TREE.map(|(_, parent)| parent).to_vec();
    (task, report)
}

/// The rows of one step, and how many tokens were forwarded for it.
pub(super) fn next(receiver: &Receiver<Report>) -> (Vec<f32>, usize) {
    let (rows, figures) = receiver.recv_timeout(PATIENCE).unwrap().unwrap();
    (rows, figures.forwarded_tokens)
}

#[test]
fn the_path_that_was_taken_is_not_forwarded_again() {
    let engine = Trees::new(|_| {});
    next(&engine.tree(1, &[1, 2, 3]));
    let context = vec![1, 2, 3, 11, 12, 20];
    let found = next(&engine.chain(1, &context));
    assert_eq!(found, (engine.rows(&[context]), 1));
    // Another path than the one taken: only the tokens before the tree are shared.
    let context = vec![1, 2, 3, 10, 13, 20];
    let found = next(&engine.chain(1, &context));
    assert_eq!(found, (engine.rows(&[context]), 3));
}

#[test]
fn the_next_tree_begins_after_the_path_taken() {
    let engine = Trees::new(|_| {});
    next(&engine.tree(1, &[1, 2, 3]));
    let trunk = [1, 2, 3, 10, 14, 21];
    let found = next(&engine.tree(1, &trunk));
    assert_eq!(found, (engine.tree_rows(&trunk), 6));
    let context = vec![1, 2, 3, 10, 14, 21, 10, 5];
    let found = next(&engine.chain(1, &context));
    assert_eq!(found, (engine.rows(&[context]), 1));
}

#[test]
fn nothing_of_a_tree_is_taken_for_a_sequence() {
    let engine = Trees::new(|_| {});
    // The nodes side by side, as the cache held them; one that follows no other; the end of a path.
    for (more, forwarded) in [([10, 11, 12, 7], 3), ([14, 7, 7, 7], 4), ([12, 7, 7, 7], 4)] {
        next(&engine.tree(1, &[1, 2, 3]));
        let context = [&[1, 2, 3][..], &more].concat();
        let found = next(&engine.chain(1, &context));
        assert_eq!(found, (engine.rows(&[context]), forwarded), "{more:?}");
    }
    assert!(engine.handle.is_healthy());
}

/// Two more nodes below those of [`TREE`], and one beside them.
const GROWN: [(TokenId, Option<u32>); 8] = [
    TREE[0],
    TREE[1],
    TREE[2],
    TREE[3],
    TREE[4],
    (15, Some(2)),
    (16, None),
    (17, Some(5)),
];

#[test]
fn a_tree_grows_below_what_is_held_of_it() {
    let engine = Trees::new(|_| {});
    let trunk = [1, 2, 3];
    next(&engine.tree(1, &trunk));
    let paths = |paths: &[&[TokenId]]| {
        let contexts = paths.iter().map(|path| [&trunk[..], path].concat());
        engine.rows(&contexts.collect::<Vec<_>>())
    };
    let found = next(&engine.nodes(1, &trunk, &GROWN[..7], 5));
    assert_eq!(found, (paths(&[&[11, 12, 15], &[16]]), 2));
    let found = next(&engine.nodes(1, &trunk, &GROWN, 7));
    assert_eq!(found, (paths(&[&[11, 12, 15, 17]]), 1));
    // The text went on along a branch, which stays a tree after it, and grows.
    let rest = [(15, None), (17, Some(0)), (18, Some(0)), (19, Some(1))];
    let found = next(&engine.nodes(1, &[1, 2, 3, 11, 12], &rest, 2));
    let grown: [&[TokenId]; 2] = [&[11, 12, 15, 18], &[11, 12, 15, 17, 19]];
    assert_eq!(found, (paths(&grown), 2));
    let context = vec![1, 2, 3, 11, 12, 15, 17, 19, 5];
    let found = next(&engine.chain(1, &context));
    assert_eq!(found, (engine.rows(&[context]), 1));
}

/// The text went another way, and is shorter than what was held of the tree.
#[test]
fn a_task_may_want_less_than_before() {
    let engine = Trees::new(|_| {});
    next(&engine.tree(1, &[1, 2, 3]));
    let (mut task, report) = Score::rows(&[1, 2, 3]);
    task.tokens.extend(GROWN.map(|(token, _)| token));
    task.parents = GROWN.map(|(_, parent)| parent).to_vec();
    task.scored_from = 3 + 5;
    let context = vec![1, 2, 3, 11];
    task.next = Some(context.clone());
    let report = engine.submit(1, (task, report));
    assert_eq!(next(&report).1, 3);
    assert_eq!(next(&report), (engine.rows(&[context]), 1));
}

#[test]
fn what_is_not_held_as_it_is_wanted_is_forwarded_whole() {
    let trunk = [1, 2, 3];
    let trial = |engine: &Trees, nodes: &[(TokenId, Option<u32>)], from| {
        next(&engine.tree(1, &trunk));
        next(&engine.nodes(1, &trunk, nodes, from)).1
    };
    let engine = Trees::new(|_| {});
    assert_eq!(trial(&engine, &GROWN, 5), 3);
    // Rows of nodes that are held, another order, another tree.
    assert_eq!(trial(&engine, &GROWN, 3), 5);
    assert_eq!(trial(&engine, &[TREE[1], TREE[0]], 1), 1);
    assert_eq!(trial(&engine, &[(30, None), (31, Some(0))], 1), 2);
    // Another trunk.
    next(&engine.tree(1, &trunk));
    assert_eq!(next(&engine.nodes(1, &[1, 2, 4], &GROWN, 5)).1, 1 + 8);
}

#[test]
fn a_task_goes_on_after_its_tree() {
    let engine = Trees::new(|_| {});
    let context = vec![1, 2, 3, 11, 30];
    let (mut task, report) = tree_after(&[1, 2, 3]);
    task.next = Some(context.clone());
    let report = engine.submit(1, (task, report));
    assert_eq!(next(&report), (engine.tree_rows(&[1, 2, 3]), 8));
    assert_eq!(next(&report), (engine.rows(&[context]), 1));
}

#[test]
fn chunks_end_before_the_tree() {
    for chunk in 1..9 {
        let engine = Trees::new(|config| config.prefill_chunk = bound(chunk));
        let trunk: Vec<TokenId> = (20..27).collect();
        let expected = engine.tree_rows(&trunk);
        let found = next(&engine.tree(1, &trunk));
        assert_eq!(found, (expected.clone(), 12), "chunks of {chunk}");
        // Scored from the middle of the tree on: its first nodes are forwarded with the others.
        let (mut task, report) = tree_after(&trunk);
        task.scored_from = trunk.len() + 3;
        let found = next(&engine.submit(2, (task, report)));
        let rows = expected[4 * VOCAB..].to_vec();
        assert_eq!(found, (rows, 12), "chunks of {chunk}");
    }
}

#[test]
fn trees_and_chains_share_a_forward() {
    let engine = Trees::new(|_| {});
    let reports = [
        engine.chain(1, &[1, 2, 3, 4]),
        engine.tree(2, &[5, 6]),
        engine.chain(3, &[7]),
        engine.tree(4, &[8]),
    ];
    let expected = [
        engine.rows(&[vec![1, 2, 3, 4]]),
        engine.tree_rows(&[5, 6]),
        engine.rows(&[vec![7]]),
        engine.tree_rows(&[8]),
    ];
    assert_eq!(reports.each_ref().map(|report| next(report).0), expected);
}

#[test]
fn bad_parents_end_their_task_only() {
    let engine = Trees::new(|_| {});
    let good = engine.tree(1, &[1, 2]);
    let refused = |parents: &[Option<u32>]| {
        let (mut task, report) = tree_after(&[1, 2]);
        task.parents = parents.to_vec();
        let report = engine.submit(2, (task, report));
        let error = report.recv_timeout(PATIENCE).unwrap().unwrap_err();
        std::error::Error::source(&error).unwrap().to_string()
    };
    assert_eq!(refused(&[None; 8]), "8 parents for 7 tokens");
    assert_eq!(refused(&[None, Some(1)]), "node 1 stands before its parent");
    assert_eq!(next(&good).0, engine.tree_rows(&[1, 2]));
    assert!(engine.handle.is_healthy());
}

#[test]
fn the_context_bounds_the_depth_of_a_tree() {
    let engine = Trees::new(|_| {});
    let context_len = engine.model.shape().context_len;
    // Five nodes, two deep.
    let trunk = vec![1; context_len - 2];
    let found = next(&engine.tree(1, &trunk));
    assert_eq!(found, (engine.tree_rows(&trunk), context_len + 3));
    let report = engine.tree(1, &vec![1; context_len - 1]);
    let error = report.recv_timeout(PATIENCE).unwrap().unwrap_err();
    let requested = context_len + 1;
    let reported =
        format!("the model holds {context_len} tokens a sequence, this one would have {requested}");
    assert_eq!(error.to_string(), reported);
}
