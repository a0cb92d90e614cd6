//! A draft block, put together from the messages it comes in.

use speculation::draft_tree::DraftTree;
use speculation::session::DraftStop;

use crate::{drafting, v1};

/// The part of a draft block that has come.
#[derive(Debug, Default)]
pub struct PartialBlock {
    nodes: v1::TokenTree,
    /// What came of the tokens' distributions, one each.
    pub proposals: Vec<v1::Proposal>,
}

impl PartialBlock {
    /// Takes the next message; the block may have at most `most` nodes, and distributions that `fits` allows: whoever
    /// passes them on unread does not take any amount of them.
    ///
    /// # Errors
    /// Says what about it cannot be right.
    pub fn push(
        &mut self,
        block: &mut v1::DraftBlock,
        most: usize,
        fits: impl Fn(&v1::Proposal) -> bool,
    ) -> Result<(), &'static str> {
        if block.offset as usize != self.nodes.token_ids.len() {
            return Err("draft blocks do not follow each other");
        }
        let mut all = block.proposals.iter().chain(&block.bonus);
        if !all.all(fits) {
            return Err("a draft distribution is not of the form asked for");
        }
        append(&mut self.nodes, block.tree.take().unwrap_or_default());
        self.proposals.append(&mut block.proposals);
        if is_too_much(&self.nodes, self.proposals.len(), most) {
            return Err("more was drafted than was asked for");
        }
        Ok(())
    }

    /// The tree of nodes that came. Whether they are tokens, the session checks.
    ///
    /// # Errors
    /// If the parents make no tree.
    pub fn tree(&mut self) -> Result<DraftTree, String> {
        let nodes = std::mem::take(&mut self.nodes);
        let parents = drafting::parents_from_wire(&nodes.parents);
        let parents = parents.map_err(|error| error.to_string())?;
        DraftTree::new(nodes.token_ids, parents).map_err(|error| error.to_string())
    }
}

/// Whether more came than `most` nodes with a distribution each. Parents that belong to no token count too:
/// nothing else bounds how many messages of them may come.
fn is_too_much(nodes: &v1::TokenTree, proposals: usize, most: usize) -> bool {
    let tokens = nodes.token_ids.len();
    tokens > most || nodes.parents.len() > most || proposals > tokens
}

/// Appends the nodes of a message. One without parents goes on as a chain from the last node.
fn append(nodes: &mut v1::TokenTree, more: v1::TokenTree) {
    let chain = |from: usize, to: usize| (from..to).map(|node| node as i32 - 1);
    let held = nodes.token_ids.len();
    let after = held + more.token_ids.len();
    if more.parents.is_empty() && nodes.parents.is_empty() {
        nodes.token_ids.extend(more.token_ids);
        return;
    }
    if nodes.parents.is_empty() {
        nodes.parents.extend(chain(0, held));
    }
    if more.parents.is_empty() {
        nodes.parents.extend(chain(held, after));
    } else {
        nodes.parents.extend(more.parents);
    }
    nodes.token_ids.extend(more.token_ids);
}

/// Why a block ended; none if the drafter does not say.
pub fn stop(cause: v1::StopCause) -> Option<DraftStop> {
    match cause {
        v1::StopCause::Unspecified => None,
        v1::StopCause::Length => Some(DraftStop::Length),
        v1::StopCause::EndToken => Some(DraftStop::EndToken),
        v1::StopCause::Policy => Some(DraftStop::Policy),
        v1::StopCause::Context => Some(DraftStop::Context),
    }
}

#[cfg(test)]
mod tests;
