//! Rounds of draft trees through the shipped functions.

use crate::tree::{Pair, assert_same, emitted, outputs};
use speculation::TokenId;
use speculation::chance::Chance;
use speculation::confidence::Confidence;
use speculation::draft_tree::DraftTree;
use speculation::drafting::{
    ProposalOptions, TreeBuilder, TreeShape, draw, drawn_siblings, draws_siblings, propose,
};
use speculation::noise::Noise;
use speculation::proposal::{BadProposal, ProposalForm, ProposalProbs};
use speculation::verification::tree_rejection::{self, SiblingDistributions};
use speculation::verification::{LastToken, Verdict, Verification};

/// Where the nodes of a tree come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum NodeSource {
    /// They are drawn from the draft distribution, which is sent in this form.
    Drawn(ProposalForm),
    /// They are point proposals, chosen by the tokens before them.
    Points,
}

/// How rounds are made.
#[derive(Clone, Copy)]
pub(super) struct Setup<'a> {
    pub(super) pair: &'a Pair,
    pub(super) source: NodeSource,
    pub(super) shape: TreeShape,
    /// Most levels of a tree.
    pub(super) levels: u32,
    /// Whether it ends before that, after these tokens of output and lead path.
    pub(super) stops: fn(&[TokenId]) -> bool,
    pub(super) ends: &'a [TokenId],
}

/// The distribution that nodes of `source` are drawn from, given the draft model's `probs`.
pub(super) fn sent(mut probs: Vec<f64>, source: NodeSource) -> Vec<f64> {
    if let NodeSource::Drawn(form) = source {
        ProposalProbs::of(&mut probs, form);
    }
    probs
}

/// The verdict on `drafts`, with the target distributions after the root and each node.
pub(super) fn decide(
    drafts: &DraftTree,
    ends: &[TokenId],
    target: Vec<Vec<f64>>,
    proposals: &[ProposalProbs],
    chance: &mut impl Chance<f64>,
) -> Result<Verdict, BadProposal> {
    let mut nodes = Nodes {
        target,
        proposals,
        inner: drafts.inner(),
    };
    tree_rejection::verify(drafts, ends, chance, &mut nodes)
}

struct Nodes<'a> {
    target: Vec<Vec<f64>>,
    proposals: &'a [ProposalProbs],
    inner: Vec<Option<usize>>,
}

impl SiblingDistributions<f64> for Nodes<'_> {
    type Error = BadProposal;

    fn target(&mut self, node: Option<usize>) -> Result<&[f64], BadProposal> {
        Ok(&self.target[node.map_or(0, |node| node + 1)])
    }

    fn draft(&self, node: Option<usize>) -> Result<&ProposalProbs, BadProposal> {
        let group = self.inner.iter().position(|inner| *inner == node);
        group
            .and_then(|group| self.proposals.get(group))
            .ok_or(BadProposal::Missing)
    }
}

impl Setup<'_> {
    /// The children of the last lead, after `context`: the lead, its siblings and their proposal.
    fn level(
        &self,
        context: &[TokenId],
        at: (u32, u32),
        chance: &mut impl Chance<f64>,
    ) -> (TokenId, Vec<TokenId>, ProposalProbs) {
        let mut probs = self.pair.draft.after(context);
        match self.source {
            NodeSource::Points => {
                let vocab = probs.len() as u32;
                let lead = context.iter().sum::<u32>() % vocab;
                let beside = (1..self.shape.width()).map(|more| (lead + more) % vocab);
                (lead, beside.collect(), ProposalProbs::Point)
            }
            NodeSource::Drawn(form) => {
                let verification = Verification::TOKEN;
                assert!(draws_siblings(verification, form));
                let noise = Noise::new(0, 0);
                let options = ProposalOptions {
                    form,
                    ..Default::default()
                };
                let proposal = propose(&mut probs, None, Confidence::default(), options);
                let lead = draw(&probs, verification, &noise, at, chance);
                let level = at.1;
                let others = probs.iter().filter(|&&mass| mass > 0.0).count() - 1;
                let beside = drawn_siblings(self.shape, &mut probs, lead, level, chance);
                let wanted = self.shape.width() as usize - 1;
                assert_eq!(beside.len(), wanted.min(others), "none is drawn twice");
                (lead, beside, proposal.probs)
            }
        }
    }

    /// One round after `prefix`: its tree, and the verdict.
    pub(super) fn round(
        &self,
        prefix: &[TokenId],
        chance: &mut impl Chance<f64>,
    ) -> (DraftTree, Verdict) {
        let base_len = prefix.len() as u32;
        let mut growth = TreeBuilder::default();
        let (mut context, mut proposals) = (prefix.to_vec(), Vec::new());
        while growth.levels() < self.levels && !(self.stops)(&context) {
            let at = (base_len, growth.levels());
            let (lead, beside, probs) = self.level(&context, at, chance);
            growth.push(lead, &beside);
            proposals.push(probs);
            context.push(lead);
            if self.ends.contains(&lead) {
                break;
            }
        }
        let drafts = growth.finish();
        let after = |node: Option<usize>| {
            let mut path = Vec::new();
            let mut next = node;
            while let Some(node) = next {
                path.push(drafts.tokens()[node]);
                next = drafts.parent(node);
            }
            path.reverse();
            self.pair.target.after(&[prefix, &path].concat())
        };
        let nodes = std::iter::once(None).chain((0..drafts.len()).map(Some));
        let target = nodes.map(after).collect();
        let verdict = decide(&drafts, self.ends, target, &proposals, chance).expect("well-formed");
        let accepted = verdict.accepted();
        for (&node, &token) in verdict.path.iter().zip(&verdict.emitted) {
            assert_eq!(drafts.tokens()[node as usize], token);
        }
        let added = usize::from(verdict.last != LastToken::AcceptedEnd);
        assert_eq!(verdict.emitted.len(), accepted + added);
        // Sessions take nothing else.
        let last = verdict.path.last().map(|&node| node as usize);
        if let Some(&token) = verdict.emitted.get(accepted) {
            assert_eq!(
                drafts.child(last, token),
                None,
                "a refused child was emitted"
            );
        }
        (drafts, verdict)
    }

    /// Checks that the first `len` tokens of rounds one after the other are those of the target.
    pub(super) fn assert_exact(&self, len: usize) {
        let found = emitted(len, self.ends, |output, _, branch| {
            self.round(output, branch).1
        });
        let expected = outputs(len, self.ends, |prefix| self.pair.target.after(prefix));
        let what = format!("{:?} {:?}, {}", self.source, self.shape, self.pair.name);
        assert_same(&found, &expected, 1e-12, &what);
    }
}
