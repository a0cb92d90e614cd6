//! What is asked of a peer in a round, and what comes back.

use std::time::Duration;

use speculation::TokenId;
use speculation::proposal::ProposalForm;
use speculation::verification::Verdict;
use v1::{draft_reply, draft_request, verify_reply, verify_request};
use wire::digest::digest;
use wire::{proposal, v1, verdict};

use crate::error::PeerError;
use crate::link::{Drafting, Link, Verifying};

/// How often a peer may say that it holds too little before it is taken for broken.
const NEED_FROM_LIMIT: usize = 3;

/// Where a request stands.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) round: u64,
    /// How long the peer may take.
    pub(crate) timeout: Duration,
    /// All output tokens so far.
    pub(crate) output: &'a [TokenId],
}

/// What may come with draft tokens. The coordinator passes laws on unread, but not in any amount.
#[derive(Clone, Copy)]
pub(crate) struct Laws {
    pub(crate) form: ProposalForm,
    pub(crate) vocab_size: u32,
}

impl Laws {
    fn fit(self, tokens: usize, proposals: &[v1::Proposal]) -> bool {
        let most = |proposal: &v1::Proposal| proposal::fits(proposal, self.form, self.vocab_size);
        proposals.len() <= tokens && proposals.iter().all(most)
    }
}

/// A whole draft block.
pub(crate) struct Drafted {
    pub(crate) tokens: Vec<TokenId>,
    /// Laws for the verifier; the coordinator passes them on unread.
    pub(crate) proposals: Vec<v1::Proposal>,
    pub(crate) timing: v1::Timing,
}

/// Asks a drafter for at most `max_tokens` draft tokens.
pub(crate) async fn draft(
    link: &mut Link<Drafting>,
    ask: Ask<'_>,
    max_tokens: u32,
    laws: Laws,
) -> Result<Drafted, PeerError> {
    let request = v1::DraftRound {
        max_tokens,
        ..Default::default()
    };
    let digest = digest(&request);
    for _ in 0..NEED_FROM_LIMIT {
        let header = Some(link.header(ask.round, digest, ask.timeout, ask.output));
        let request = v1::DraftRound {
            header,
            ..request.clone()
        };
        let request = Some(draft_request::Request::Round(request));
        link.send(v1::DraftRequest { request }).await;
        if let Some(drafted) = drafted(link, ask.round, digest, (max_tokens, laws)).await? {
            link.held = ask.output.len();
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
    (max_tokens, laws): (u32, Laws),
) -> Result<Option<Drafted>, PeerError> {
    let mut drafted = Drafted {
        tokens: Vec::new(),
        proposals: Vec::new(),
        timing: v1::Timing::default(),
    };
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
                let tree = block.tree.unwrap_or_default();
                if block.offset as usize != drafted.tokens.len() || !tree.parents.is_empty() {
                    return Err(link.malformed("draft blocks do not follow each other as a chain"));
                }
                drafted.tokens.extend(tree.token_ids);
                drafted.proposals.extend(block.proposals);
                let (tokens, proposals) = (drafted.tokens.len(), &drafted.proposals);
                if tokens > max_tokens as usize || !laws.fit(tokens, proposals) {
                    return Err(link.malformed("more was drafted than was asked for"));
                }
                if block.last {
                    drafted.timing = block.timing.unwrap_or_default();
                    return Ok(Some(drafted));
                }
            }
            // Left over from before a retry.
            _ => {}
        }
    }
}

/// Asks a verifier to decide a block.
pub(crate) async fn verify(
    link: &mut Link<Verifying>,
    ask: Ask<'_>,
    drafts: Vec<TokenId>,
    proposals: Vec<v1::Proposal>,
) -> Result<(Verdict, v1::Timing), PeerError> {
    let drafts = Some(v1::TokenTree {
        token_ids: drafts,
        parents: Vec::new(),
    });
    let request = v1::VerifyRound {
        drafts,
        proposals,
        ..Default::default()
    };
    let digest = digest(&request);
    for _ in 0..NEED_FROM_LIMIT {
        let header = Some(link.header(ask.round, digest, ask.timeout, ask.output));
        let request = v1::VerifyRound {
            header,
            ..request.clone()
        };
        let request = Some(verify_request::Request::Round(request));
        link.send(v1::VerifyRequest { request }).await;
        if let Some(decided) = decided(link, ask.round, digest).await? {
            let timing = decided.timing.unwrap_or_default();
            let decided = verdict::from_wire(decided);
            let decided = decided.map_err(|error| link.malformed(error.to_string()))?;
            link.held = ask.output.len();
            link.succeeded();
            return Ok((decided, timing));
        }
    }
    Err(link.malformed("it keeps asking for earlier tokens"))
}

/// The verdict that answers a request; none if the verifier holds too little.
async fn decided(
    link: &mut Link<Verifying>,
    round: u64,
    digest: u64,
) -> Result<Option<v1::Verdict>, PeerError> {
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
                return Ok(Some(verdict));
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
        let header = Some(link.header(self.round, self.digest, ask.timeout, output));
        let request = v1::DecodeRound {
            header,
            ..self.request.clone()
        };
        let request = Some(verify_request::Request::Decode(request));
        link.send(v1::VerifyRequest { request }).await;
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
                    });
                }
                // Left over from before a retry.
                _ => {}
            }
        }
    }
}
