//! Coupled walks of draft trees: what is emitted is the target's own, whatever was drafted.

use std::convert::Infallible;

use outrider_tests::toy::ToyModel;
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::draft_tree::DraftTree;
use speculation::drafting::{TreeBuilder, TreeShape, siblings};
use speculation::noise::Noise;
use speculation::proposal::BadProposal;
use speculation::verification::tree::{NodeDistributions, verify};
use speculation::verification::{
    DraftChain, LastToken, PositionDistributions, RoundDistributions, Verdict, coupled,
};

use crate::blocks::block_of;

const VOCAB_SIZE: usize = 9;
const END: TokenId = 2;

/// A distribution (vocab) after `context`; greedy at temperature 0, and cut: some tokens are left out.
fn probs(model: &ToyModel, context: &[TokenId], greedy: bool) -> Vec<f64> {
    let mut logits = vec![0.0; VOCAB_SIZE];
    model.logits(context, &mut logits);
    let most = logits.iter().copied().fold(f32::MIN, f32::max);
    let least = if greedy { most } else { -1.5 };
    let weight = |&logit: &f32| {
        if logit >= least {
            f64::from(logit).exp()
        } else {
            0.0
        }
    };
    let weights: Vec<f64> = logits.iter().map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

struct Target<'a> {
    model: &'a ToyModel,
    greedy: bool,
    base: &'a [TokenId],
    drafts: &'a DraftTree,
    probs: Vec<f64>,
    requested: Vec<Option<usize>>,
}

impl Target<'_> {
    fn context(&self, node: Option<usize>) -> Vec<TokenId> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(node) = at {
            path.push(self.drafts.tokens()[node]);
            at = self.drafts.parent(node);
        }
        path.reverse();
        [self.base, &path].concat()
    }
}

impl NodeDistributions<f64> for Target<'_> {
    type Error = Infallible;

    fn after(&mut self, node: Option<usize>) -> Result<&[f64], Infallible> {
        self.requested.push(node);
        self.probs = probs(self.model, &self.context(node), self.greedy);
        Ok(&self.probs)
    }
}

/// The same as a chain's distributions.
struct Chain<'a>(Target<'a>);

impl RoundDistributions<f64> for Chain<'_> {
    type Error = BadProposal;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, f64>, BadProposal> {
        let target = self.0.after(offset.checked_sub(1));
        let target = target.unwrap_or_else(|never| match never {});
        Ok(PositionDistributions {
            target,
            target_unscaled: None,
            draft: &mut [],
        })
    }
}

/// A request: two models, noise, and the output so far.
struct Request {
    target: ToyModel,
    draft: ToyModel,
    noise: Noise,
    greedy: bool,
    base: Vec<TokenId>,
}

impl Request {
    fn new(seed: u64) -> Self {
        let target = ToyModel::new(seed, VOCAB_SIZE);
        let base = (0..seed % 5).map(|at| ((seed + at) % 7) as TokenId + 2);
        Self {
            draft: target.near(seed ^ 0xd1af, 0.35),
            target,
            noise: Noise::new(seed, 0),
            greedy: seed.is_multiple_of(3),
            base: base.collect(),
        }
    }

    fn base_len(&self) -> u32 {
        self.base.len() as u32
    }

    /// Returns what the target alone emits, up to `len` tokens.
    fn target_alone(&self, len: usize) -> Vec<TokenId> {
        let mut context = self.base.clone();
        let mut emitted = Vec::new();
        while emitted.len() < len && emitted.last() != Some(&END) {
            let probs = probs(&self.target, &context, self.greedy);
            let token = choice(&probs, &self.noise, context.len() as u32);
            context.push(token);
            emitted.push(token);
        }
        emitted
    }

    /// A tree of `levels` levels, as a drafter grows it; it ends at an end token.
    fn drafts(&self, shape: TreeShape, levels: u32) -> DraftTree {
        let mut context = self.base.clone();
        let mut growth = TreeBuilder::default();
        while growth.levels() < levels {
            let position = context.len() as u32;
            let cut = probs(&self.draft, &context, self.greedy);
            let unscaled = probs(&self.draft, &context, false);
            let lead = choice(&cut, &self.noise, position);
            let others = siblings(shape, &cut, &unscaled, lead, &self.noise, position);
            growth.push(lead, &others);
            if lead == END {
                break;
            }
            context.push(lead);
        }
        growth.finish()
    }

    fn distributions<'a>(&'a self, drafts: &'a DraftTree) -> Target<'a> {
        Target {
            model: &self.target,
            greedy: self.greedy,
            base: &self.base,
            drafts,
            probs: Vec::new(),
            requested: Vec::new(),
        }
    }

    fn walk(&self, drafts: &DraftTree) -> Verdict {
        let mut distributions = self.distributions(drafts);
        let verdict = verify(
            drafts,
            self.base_len(),
            &[END],
            &self.noise,
            &mut distributions,
        );
        let verdict = verdict.unwrap_or_else(|never| match never {});
        // Nothing is asked for beside the path.
        let path = verdict.path.iter().map(|&node| Some(node as usize));
        let mut expected: Vec<_> = std::iter::once(None).chain(path).collect();
        if verdict.last == LastToken::AcceptedEnd {
            expected.pop();
        }
        assert_eq!(distributions.requested, expected);
        verdict
    }
}

/// Any tree; what stands below an end token must not be reached.
fn any_tree(seed: u64, nodes: usize) -> DraftTree {
    let dice = |at: usize, below: usize| {
        let word = speculation::philox::philox([at as u32, 7, 7, 7], [seed as u32, 9])[0];
        word as usize % below
    };
    let (mut tokens, mut parents): (Vec<TokenId>, Vec<Option<u32>>) = Default::default();
    for node in 0..nodes {
        let parent = dice(2 * node, tokens.len() + 1).checked_sub(1);
        let token = dice(2 * node + 1, VOCAB_SIZE) as TokenId;
        let parent = parent.map(|parent| parent as u32);
        let is_there = (tokens.iter().zip(&parents)).any(|pair| pair == (&token, &parent));
        if !is_there {
            tokens.push(token);
            parents.push(parent);
        }
    }
    DraftTree::new(tokens, parents).expect("a tree")
}

fn check(request: &Request, drafts: &DraftTree, verdict: &Verdict) {
    let expected = request.target_alone(verdict.emitted.len());
    assert_eq!(verdict.emitted, expected, "{drafts:?}");
    let mut node = None;
    for (&next, &token) in verdict.path.iter().zip(&verdict.emitted) {
        assert_eq!(drafts.child(node, token), Some(next as usize));
        node = Some(next as usize);
    }
    let at_leaf = node.map_or(drafts.is_empty(), |node| drafts.is_leaf(node));
    match verdict.last {
        LastToken::AcceptedEnd => {
            assert_eq!(verdict.emitted.len(), verdict.path.len());
            assert_eq!(verdict.emitted.last(), Some(&END));
        }
        last => {
            assert_eq!(verdict.emitted.len(), verdict.path.len() + 1);
            assert_eq!(last == LastToken::Bonus, at_leaf);
            let added = verdict.emitted[verdict.path.len()];
            assert_eq!(drafts.child(node, added), None, "it went on no further");
        }
    }
}

#[test]
fn any_tree_emits_the_targets_own_tokens() {
    let mut ends = [0; 3];
    for seed in 0..4_000 {
        let request = Request::new(seed);
        let drafts = any_tree(seed, (seed % 30) as usize);
        let verdict = request.walk(&drafts);
        check(&request, &drafts, &verdict);
        ends[verdict.last as usize] += 1;
    }
    assert!(ends.iter().all(|&count| count > 20), "{ends:?}");
}

/// The lead path of a tree is the chain, so a tree never accepts less; and the walk of a chain is coupled
/// verification of it.
#[test]
fn a_grown_tree_accepts_at_least_what_its_lead_path_does() {
    let shapes = [
        TreeShape::Comb(3),
        TreeShape::Comb(8),
        TreeShape::Alternates(1),
        TreeShape::Alternates(3),
    ];
    let mut more = [[0; 4]; 2];
    let mut accepted = 0;
    for seed in 0..1_500 {
        let request = Request::new(seed);
        let levels = (seed % 7) as u32;
        let chain = request.drafts(TreeShape::Chain, levels);
        let walked = request.walk(&chain);
        check(&request, &chain, &walked);
        let block = DraftChain {
            ends: &[END],
            ..block_of(chain.tokens(), request.base_len())
        };
        let by_chain = coupled::verify(
            &block,
            &request.noise,
            &mut Chain(request.distributions(&chain)),
        );
        let by_chain = by_chain.expect("distributions");
        assert_eq!(walked, by_chain);
        accepted += walked.path.len();
        for (index, shape) in shapes.into_iter().enumerate() {
            let drafts = request.drafts(shape, levels);
            assert_eq!(drafts.levels(), chain.levels());
            let verdict = request.walk(&drafts);
            check(&request, &drafts, &verdict);
            assert!(verdict.path.len() >= walked.path.len());
            more[usize::from(request.greedy)][index] += verdict.path.len() - walked.path.len();
        }
    }
    assert!(accepted > 1_000, "{accepted}");
    // At every temperature siblings are of use, and more of them of more.
    for [comb3, comb8, one, three] in more {
        assert!(
            0 < comb3 && comb3 < comb8 && 0 < one && one < three,
            "{more:?}"
        );
    }
}
