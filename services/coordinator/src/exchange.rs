//! What is asked of a peer in a round, and what comes back.

use std::time::{Duration, Instant};

use server::trace::TraceContext;
use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use speculation::proposal::ProposalForm;
use speculation::session::DraftStop;
use v1::{draft_reply, draft_request, verify_reply, verify_request};
use wire::digest::digest;
use wire::{drafting, proposal, slice, v1};

use crate::error::PeerError;
use crate::link::{Drafting, Link, Verifying};

/// How often a peer may say that it holds too little before it is taken for broken.
const NEED_FROM_LIMIT: usize = 3;

/// Where a request stands.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) round: u64,
    /// How long the peer may take, from `began` on.
    pub(crate) timeout: Duration,
    pub(crate) began: Instant,
    /// All output tokens so far.
    pub(crate) output: &'a [TokenId],
    /// How many of them were emitted, and so will stand at the next round.
    pub(crate) emitted: usize,
    /// What the peer hangs its spans on, if it is to make any.
    pub(crate) trace: Option<TraceContext>,
}

/// What may come of a drafter. The coordinator passes laws on unread, but not in any amount.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) form: ProposalForm,
    pub(crate) vocab_size: u32,
    /// Nodes at each level of a draft block.
    pub(crate) width: u32,
}

impl Bounds {
    fn fit<'p>(self, mut proposals: impl Iterator<Item = &'p v1::Proposal>) -> bool {
        proposals.all(|proposal| proposal::fits(proposal, self.form, self.vocab_size))
    }
}

/// A whole draft block.
#[derive(Clone, Debug)]
pub(crate) struct Drafted {
    pub(crate) drafts: DraftTree,
    /// What is told of the tokens' laws; the coordinator passes it on unread.
    pub(crate) proposals: Vec<v1::Proposal>,
    /// The same of the position after the block.
    pub(crate) bonus: Option<v1::Proposal>,
    pub(crate) stop: DraftStop,
    pub(crate) timing: v1::Timing,
    /// Forwards of each model of the drafter; empty if it does not say.
    pub(crate) forwards: Vec<u32>,
}

/// Asks a drafter for what `request` says; its header is yet to be filled in.
pub(crate) async fn draft(
    link: &mut Link<Drafting>,
    ask: Ask<'_>,
    request: v1::DraftRound,
    bounds: Bounds,
) -> Result<Drafted, PeerError> {
    let digest = digest(&request);
    for _ in 0..NEED_FROM_LIMIT {
        let header = Some(link.header(ask, digest, ask.output));
        let request = v1::DraftRound {
            header,
            ..request.clone()
        };
        let max_tokens = request.max_tokens;
        let request = Some(draft_request::Request::Round(request));
        link.send(v1::DraftRequest { request }).await;
        if let Some(drafted) = drafted(link, ask.round, digest, (max_tokens, bounds)).await? {
            link.held = ask.emitted;
            link.succeeded();
            return Ok(drafted);
        }
    }
    Err(link.malformed("it keeps asking for earlier tokens"))
}

/// The block that answers a request; none if the drafter holds too little.
async fn drafted(
    link: &mut Link<Drafting>,
    round: u64,
    digest: u64,
    (max_tokens, bounds): (u32, Bounds),
) -> Result<Option<Drafted>, PeerError> {
    let most = max_tokens.saturating_mul(bounds.width) as usize;
    let mut nodes = v1::TokenTree::default();
    let mut proposals = Vec::new();
    loop {
        match link.receive().await?.reply {
            Some(draft_reply::Reply::NeedFrom(need))
                if link.answers(need.header.as_ref(), round, digest) =>
            {
                link.held = need.from as usize;
                return Ok(None);
            }
            Some(draft_reply::Reply::Block(block))
                if link.answers(block.header.as_ref(), round, digest) =>
            {
                let cause = block.stop_cause();
                if block.offset as usize != nodes.token_ids.len() {
                    return Err(link.malformed("draft blocks do not follow each other"));
                }
                let told = block.proposals.iter().chain(&block.bonus);
                if !bounds.fit(told) {
                    return Err(link.malformed("a draft law is not of the form asked for"));
                }
                append(&mut nodes, block.tree.unwrap_or_default());
                proposals.extend(block.proposals);
                if is_too_much(&nodes, proposals.len(), most) {
                    return Err(link.malformed("more was drafted than was asked for"));
                }
                if block.last {
                    let drafts = tree(nodes).map_err(|problem| link.malformed(problem))?;
                    let stop = stop(cause)
                        .ok_or_else(|| link.malformed("the block's end is not explained"))?;
                    return Ok(Some(Drafted {
                        drafts,
                        proposals,
                        bonus: block.bonus,
                        stop,
                        timing: block.timing.unwrap_or_default(),
                        forwards: block.forwards,
                    }));
                }
            }
            // Left over from before a retry.
            _ => {}
        }
    }
}

/// Whether more came than `most` nodes with a law each. Parents that belong to no token count too: nothing
/// else bounds how many messages of them may come.
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

/// The tree of nodes that came. Whether they are tokens, the session checks.
fn tree(nodes: v1::TokenTree) -> Result<DraftTree, String> {
    let parents = drafting::parents_from_wire("drafts.parents", &nodes.parents);
    let parents = parents.map_err(|error| error.to_string())?;
    DraftTree::new(nodes.token_ids, parents).map_err(|error| error.to_string())
}

fn stop(cause: v1::StopCause) -> Option<DraftStop> {
    match cause {
        v1::StopCause::Unspecified => None,
        v1::StopCause::Length => Some(DraftStop::Length),
        v1::StopCause::EndToken => Some(DraftStop::EndToken),
        v1::StopCause::Policy => Some(DraftStop::Policy),
        v1::StopCause::Context => Some(DraftStop::Context),
    }
}

/// A verifier's answer about a block.
pub(crate) enum Verified {
    /// It decided.
    Decided(v1::Verdict),
    /// It scored the block, and the coordinator decides.
    Scored(Vec<v1::Slice>),
}

/// Asks a verifier to decide or score what `request` says; its header is yet to be filled in.
pub(crate) async fn verify(
    link: &mut Link<Verifying>,
    ask: Ask<'_>,
    request: v1::VerifyRound,
    vocab_size: u32,
) -> Result<Verified, PeerError> {
    let digest = digest(&request);
    let drafts = request.drafts.as_ref();
    let expected = Expected {
        positions: 1 + drafts.map_or(0, |tree| tree.token_ids.len()),
        slices: request.slices.is_some(),
        vocab_size,
    };
    for _ in 0..NEED_FROM_LIMIT {
        let header = Some(link.header(ask, digest, ask.output));
        let request = v1::VerifyRound {
            header,
            ..request.clone()
        };
        let request = Some(verify_request::Request::Round(request));
        link.send(v1::VerifyRequest { request }).await;
        if let Some(verified) = verified(link, ask.round, digest, expected).await? {
            link.held = ask.emitted;
            link.succeeded();
            return Ok(verified);
        }
    }
    Err(link.malformed("it keeps asking for earlier tokens"))
}

/// What kind of answer a verifier owes.
#[derive(Clone, Copy)]
struct Expected {
    /// Slices, one a position, instead of a verdict.
    slices: bool,
    positions: usize,
    vocab_size: u32,
}

/// What answers a request; none if the verifier holds too little.
async fn verified(
    link: &mut Link<Verifying>,
    round: u64,
    digest: u64,
    expected: Expected,
) -> Result<Option<Verified>, PeerError> {
    let mut slices = Vec::new();
    loop {
        match link.receive().await?.reply {
            Some(verify_reply::Reply::NeedFrom(need))
                if link.answers(need.header.as_ref(), round, digest) =>
            {
                link.held = need.from as usize;
                return Ok(None);
            }
            Some(verify_reply::Reply::Verdict(verdict))
                if link.answers(verdict.header.as_ref(), round, digest) =>
            {
                if expected.slices {
                    return Err(link.malformed("a verdict came where slices were asked for"));
                }
                return Ok(Some(Verified::Decided(verdict)));
            }
            Some(verify_reply::Reply::Slice(slice))
                if link.answers(slice.header.as_ref(), round, digest) =>
            {
                if !expected.slices || !slice::fits(&slice, expected.vocab_size) {
                    return Err(link.malformed("a slice that nobody asked for, or too large"));
                }
                let last = slice.last;
                slices.push(slice);
                if last != (slices.len() == expected.positions) {
                    return Err(link.malformed("not one slice for each position"));
                }
                if last {
                    return Ok(Some(Verified::Scored(slices)));
                }
            }
            // Left over from before a retry.
            _ => {}
        }
    }
}

/// A verifier that decodes alone.
pub(crate) struct Decoding {
    request: v1::DecodeRound,
    round: u64,
    digest: u64,
    /// Output tokens it started from.
    base_len: usize,
    need_from: usize,
}

/// Tokens decoded alone.
pub(crate) struct Decoded {
    /// Output position of the first.
    pub(crate) at: u32,
    pub(crate) tokens: Vec<TokenId>,
    /// What the verifier says of its share.
    pub(crate) timing: v1::Timing,
}

impl Decoding {
    /// Asks a verifier to decode `max_tokens` tokens.
    pub(crate) async fn start(link: &mut Link<Verifying>, ask: Ask<'_>, max_tokens: u32) -> Self {
        let request = v1::DecodeRound {
            max_tokens,
            header: None,
        };
        let digest = digest(&request);
        let base_len = ask.output.len();
        let decoding = Self {
            request,
            round: ask.round,
            digest,
            base_len,
            need_from: 0,
        };
        decoding.send(link, ask).await;
        decoding
    }

    async fn send(&self, link: &mut Link<Verifying>, ask: Ask<'_>) {
        let output = &ask.output[..self.base_len];
        let header = Some(link.header(ask, self.digest, output));
        let request = v1::DecodeRound {
            header,
            ..self.request.clone()
        };
        let request = Some(verify_request::Request::Decode(request));
        link.send(v1::VerifyRequest { request }).await;
    }

    /// Tokens that are yet to come; `ask` holds the output as it is by now.
    pub(crate) fn left(&self, ask: Ask<'_>) -> u32 {
        let decoded = ask.output.len().saturating_sub(self.base_len);
        self.request
            .max_tokens
            .saturating_sub(decoded as u32)
            .max(1)
    }

    /// The next tokens; `ask` holds the output as it is by now.
    pub(crate) async fn next(
        &mut self,
        link: &mut Link<Verifying>,
        ask: Ask<'_>,
    ) -> Result<Decoded, PeerError> {
        loop {
            match link.receive().await?.reply {
                Some(verify_reply::Reply::NeedFrom(need))
                    if link.answers(need.header.as_ref(), self.round, self.digest) =>
                {
                    self.need_from += 1;
                    if self.need_from == NEED_FROM_LIMIT {
                        return Err(link.malformed("it keeps asking for earlier tokens"));
                    }
                    link.held = need.from as usize;
                    self.send(link, ask).await;
                }
                Some(verify_reply::Reply::Decoded(decoded))
                    if link.answers(decoded.header.as_ref(), self.round, self.digest) =>
                {
                    link.held = self.base_len;
                    link.succeeded();
                    let at = decoded.header.unwrap_or_default().base_len;
                    return Ok(Decoded {
                        at,
                        tokens: decoded.token_ids,
                        timing: decoded.timing.unwrap_or_default(),
                    });
                }
                // Left over from before a retry.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
