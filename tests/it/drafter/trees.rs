//! Draft blocks as trees: the lead path is what a chain would be, and its siblings are those of the
//! definition.

use speculation::drafting::{TreeBuilder, TreeShape, siblings};
use wire::v1::tree_shape::Shape;
use wire::v1::{Drafting, StopCause};

use super::reference::Reference;
use super::{Rounds, draft, opening, policy, requested, samplings, three, tree};

const SHAPES: [(Shape, TreeShape); 3] = [
    (Shape::Comb(8), TreeShape::Comb(8)),
    (Shape::Alternates(2), TreeShape::Alternates(2)),
    (Shape::Alternates(1), TreeShape::Alternates(1)),
];

#[tokio::test]
async fn a_tree_is_the_chain_with_its_siblings() {
    let drafter = three().await;
    for sampling in samplings() {
        let opening = opening(&sampling, |_| {});
        let mut reference = Reference::new(draft(), &opening);
        let mut rounds = Rounds::open(&drafter, opening).await;
        for output in [vec![], vec![900, 901, 902]] {
            let chain = rounds.ask(&output, requested(Drafting::Model, 6)).await;
            for (wire, shape) in SHAPES {
                let mut growth = TreeBuilder::default();
                for (at, &lead) in chain.tokens().iter().enumerate() {
                    let distributions = reference.after(&output, &chain.tokens()[..at]);
                    let position = (output.len() + at) as u32;
                    let (probs, unscaled) = (&distributions.probs, &distributions.unscaled);
                    let noise = &reference.noise;
                    growth.push(
                        lead,
                        &siblings(shape, probs, unscaled, lead, noise, position),
                    );
                }
                let mut question = requested(Drafting::Model, 6);
                question.tree = Some(tree(wire));
                question.tokens_per_block = 5;
                let block = rounds.ask(&output, question).await;
                assert_eq!(block.drafts, growth.finish(), "{shape:?} after {output:?}");
                assert_eq!((block.stop, &block.forwards), (chain.stop, &chain.forwards));
                let width = shape.width() as usize;
                assert_eq!(block.drafts.len(), width * chain.tokens().len());
            }
        }
    }
}

/// The cascade's tokens have siblings where the largest model reviewed them, by its distributions.
#[tokio::test]
async fn a_cascade_grows_trees_too() {
    let drafter = three().await;
    for sampling in samplings() {
        let opening = opening(&sampling, |_| {});
        let mut reference = Reference::new(draft(), &opening);
        let mut rounds = Rounds::open(&drafter, opening).await;
        for (wire, shape) in SHAPES {
            let output = [900, 901, 902];
            let chain = rounds.ask(&output, requested(Drafting::Cascade, 8)).await;
            let mut question = requested(Drafting::Cascade, 8);
            question.tree = Some(tree(wire));
            let block = rounds.ask(&output, question).await;
            let depths = block.drafts.depths();
            let mut with_siblings = 0;
            for (at, &lead) in chain.tokens().iter().enumerate() {
                let level: Vec<u32> = (depths.iter().zip(block.tokens()))
                    .filter(|&(&depth, _)| depth as usize == at)
                    .map(|(_, &token)| token)
                    .collect();
                assert_eq!(level[0], lead);
                if level.len() == 1 {
                    continue;
                }
                with_siblings += 1;
                let distributions = reference.after(&output, &chain.tokens()[..at]);
                let position = (output.len() + at) as u32;
                let (probs, unscaled) = (&distributions.probs, &distributions.unscaled);
                let noise = &reference.noise;
                let expected = siblings(shape, probs, unscaled, lead, noise, position);
                assert_eq!(level[1..], expected, "{shape:?} at {at}");
            }
            assert!(
                with_siblings >= 2,
                "the largest model reviews two tokens and more"
            );
        }
    }
}

#[tokio::test]
async fn a_stop_rule_ends_the_lead_path() {
    let drafter = three().await;
    let mut rounds = Rounds::open(&drafter, opening(&samplings()[1], |_| {})).await;
    let mut question = requested(Drafting::Model, 8);
    question.draft_length = Some(policy(wire::v1::draft_length::Policy::Confidence(0.4)));
    let mut stopped = 0;
    for output in [vec![], vec![900], vec![901, 17], vec![55, 66, 77]] {
        question.tree = None;
        let chain = rounds.ask(&output, question.clone()).await;
        question.tree = Some(tree(Shape::Comb(3)));
        let block = rounds.ask(&output, question.clone()).await;
        assert_eq!(block.drafts.levels(), chain.drafts.levels());
        assert_eq!((block.stop, &block.forwards), (chain.stop, &chain.forwards));
        stopped += usize::from(chain.stop == StopCause::Policy);
    }
    assert!(stopped > 0, "nothing ever stopped");
}
