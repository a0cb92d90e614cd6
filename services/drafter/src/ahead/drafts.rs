//! What is drafted ahead of an output, between the tasks that draft it.

use peer::Commits;
use speculation::TokenId;
use speculation::ahead::{Acceptance, AheadTree};
use speculation::pending::ProposedTree;
use wire::status::BadField;

/// Drafts of the first so many levels past the output are told at once: the target's next forward may take them. Deeper ones
/// wait for those of so many forwards, for each message takes processors on its way.
const SOON: u32 = 3;
const TOGETHER: u32 = 3;

/// What is drafted ahead of an output.
#[derive(Default)]
pub(super) struct AheadDrafts {
    /// The output that the coordinator told.
    pub(super) output: Vec<TokenId>,
    pub(super) tree: AheadTree,
    pub(super) acceptance: Acceptance,
    /// Most nodes, by the credit of the latest commit; none before the first.
    room: Option<usize>,
    pub(super) price: f32,
    /// Forwards since drafts were told.
    untold: u32,
    /// Time of one more row, as a share of a forward of one.
    pub(super) row_cost: f32,
}

impl AheadDrafts {
    /// Nothing ahead of `output` yet; `learnt` is what is known of other sessions.
    pub(super) fn new(output: &[TokenId], learnt: Acceptance) -> Self {
        Self {
            output: output.to_vec(),
            acceptance: learnt,
            ..Self::default()
        }
    }

    /// Follows what the target chose meanwhile.
    ///
    /// # Errors
    /// If there is a gap before it, or a token is not in the vocabulary.
    pub(super) fn follow(&mut self, commits: &Commits, vocab_size: u32) -> Result<(), BadField> {
        let Some(commit) = commits.take() else {
            return Ok(());
        };
        for &token in commit.beyond(self.output.len(), vocab_size)? {
            self.tree.advance(token, &mut self.acceptance);
            self.output.push(token);
        }
        self.room = Some(self.tree.len() + commit.credit as usize);
        self.price = commit.price;
        Ok(())
    }

    /// Most nodes, of which the limit is `most`: none beyond those that are welcome.
    pub(super) fn nodes(&self, most: usize) -> usize {
        self.room.map_or(most, |room| room.min(most))
    }

    /// Returns, after a forward, whether what was not proposed yet is to be.
    pub(super) fn are_due(&mut self) -> bool {
        self.untold += 1;
        let nearest = self.tree.nearest_untold();
        nearest.is_some_and(|depth| depth < SOON || self.untold >= TOGETHER)
    }

    /// Returns a proposal of what was not proposed yet, if there is any.
    pub(super) fn propose(&mut self) -> Option<ProposedTree> {
        self.untold = 0;
        self.tree.propose(self.output.len() as u32)
    }
}
