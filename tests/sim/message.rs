//! What travels between the coordinator and its peers.

use std::time::Duration;

use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use speculation::proposal::Proposal;
use speculation::session::{DraftBlock, DraftStop, Input, Peer, Request, ScoredDrafts};
use speculation::verification::{LastToken, Verdict};

use crate::case::{END_TOKEN, VOCAB_SIZE};

/// A request to a peer.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) round: u64,
    /// First position of `committed`.
    pub(crate) from_len: usize,
    /// Output tokens from there on.
    pub(crate) committed: Vec<TokenId>,
    pub(crate) request: Request,
    /// The proposals of the draft tokens of a block to verify, and last the one after them if it was requested.
    pub(crate) proposals: Vec<Proposal>,
    /// Output position up to which tokens are granted, of a decode that takes drafts as they come.
    pub(crate) granted: u32,
}

impl Ask {
    pub(crate) fn base_len(&self) -> u32 {
        (self.from_len + self.committed.len()) as u32
    }
}

/// A message from a peer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The round it answers.
    pub(crate) round: u64,
    /// Whether it came from the peer that replaces the first one.
    pub(crate) is_of_another: bool,
    pub(crate) answer: Answer,
}

/// What a peer has to say.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Drafted {
        tokens: Vec<TokenId>,
        /// Of each token in a tree; empty for a chain.
        parents: Vec<Option<u32>>,
        stop: DraftStop,
        proposals: Vec<Proposal>,
    },
    Verified {
        verdict: Verdict,
    },
    Decoded {
        at: u32,
        tokens: Vec<TokenId>,
        drafts: Option<ScoredDrafts>,
    },
    Scored {
        from: u32,
        count: u32,
    },
    /// It holds this many output tokens, and the request builds on more.
    NeedFrom(u32),
    Refused {
        reason: String,
        retry: bool,
    },
    Overloaded {
        retry_after: Duration,
    },
}

/// How an answer is falsified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// A token is not in the vocabulary.
    OutOfRange,
    /// More tokens are said to be accepted than were; a decoded token stands at another position.
    WrongCount,
    /// Tokens other than those drafted.
    OtherTokens,
    /// More tokens than were asked for.
    TooMany,
    /// No token.
    Empty,
    /// Tokens after one that ends the output.
    PastTheEnd,
}

impl Corruption {
    pub(crate) const ALL: [Self; 6] = [
        Self::OutOfRange,
        Self::WrongCount,
        Self::OtherTokens,
        Self::TooMany,
        Self::Empty,
        Self::PastTheEnd,
    ];
}

/// More tokens than any request of a simulation asks for.
const TOO_MANY: usize = 64;

impl Answer {
    /// What `peer` said in `round`, as the session hears it. None for what concerns the link only.
    pub(crate) fn into_input(self, peer: Peer, round: u64) -> Option<Input> {
        Some(match self {
            Self::Drafted {
                tokens,
                parents,
                stop,
                proposals,
            } => {
                let drafted = proposals.iter().take(tokens.len());
                let logprobs = drafted.filter_map(|proposal| proposal.logprob).collect();
                let drafts = if parents.is_empty() {
                    tokens.into()
                } else {
                    match DraftTree::new(tokens, parents) {
                        Ok(drafts) => drafts,
                        // Whoever reads the message finds it.
                        Err(error) => {
                            return Some(Input::Failed {
                                round,
                                peer,
                                reason: error.to_string(),
                                retry: false,
                            });
                        }
                    }
                };
                Input::Drafted {
                    round,
                    block: DraftBlock {
                        drafts,
                        stop,
                        logprobs,
                        forwards: Vec::new(),
                    },
                }
            }
            Self::Verified { verdict } => Input::Verified { round, verdict },
            Self::Decoded { at, tokens, drafts } => Input::Decoded {
                round,
                at,
                tokens,
                drafts,
            },
            Self::Scored { from, count } => Input::Scored { round, from, count },
            Self::NeedFrom(_) => return None,
            Self::Refused { reason, retry } => Input::Failed {
                round,
                peer,
                reason,
                retry,
            },
            Self::Overloaded { retry_after } => Input::Backpressure {
                round,
                peer,
                retry_after,
            },
        })
    }

    /// Falsifies the answer so that the session can tell. A target's own token in another's place
    /// cannot be told, since the verifier is trusted for its model; no corruption makes one.
    pub(crate) fn corrupt(&mut self, corruption: Corruption) {
        match self {
            Self::Drafted { tokens, stop, .. } => match corruption {
                // A shorter block of other tokens is one that a bad draft model could have drafted.
                Corruption::WrongCount => {
                    tokens.truncate(tokens.len() / 2);
                    *stop = DraftStop::Length;
                }
                Corruption::OtherTokens => {
                    tokens.iter_mut().for_each(other);
                    *stop = DraftStop::Length;
                }
                _ => falsify(tokens, corruption),
            },
            Self::Verified { verdict } => match corruption {
                Corruption::OtherTokens if verdict.accepted() > 0 => other(&mut verdict.emitted[0]),
                Corruption::WrongCount | Corruption::OtherTokens => {
                    verdict.path.push(verdict.accepted() as u32);
                }
                Corruption::PastTheEnd if verdict.last == LastToken::AcceptedEnd => {
                    verdict.emitted.push(0);
                    verdict.last = LastToken::Bonus;
                }
                _ => falsify(&mut verdict.emitted, corruption),
            },
            Self::Decoded {
                drafts: Some(drafts),
                ..
            } if corruption == Corruption::WrongCount => drafts.accepted += 1,
            Self::Decoded { at, tokens, .. } => match corruption {
                Corruption::WrongCount | Corruption::OtherTokens => *at += TOO_MANY as u32,
                _ => falsify(tokens, corruption),
            },
            Self::Scored { from, count } => match corruption {
                Corruption::WrongCount | Corruption::OtherTokens => *from += TOO_MANY as u32,
                Corruption::Empty => *count = 0,
                _ => *count += TOO_MANY as u32,
            },
            Self::NeedFrom(_) | Self::Refused { .. } | Self::Overloaded { .. } => {}
        }
    }
}

/// Puts another token of the vocabulary in `token`'s place, and none that ends the output.
fn other(token: &mut TokenId) {
    let step = if *token + 1 == END_TOKEN { 2 } else { 1 };
    *token = (*token + step) % VOCAB_SIZE;
}

fn falsify(tokens: &mut Vec<TokenId>, corruption: Corruption) {
    match corruption {
        Corruption::OutOfRange => tokens.iter_mut().for_each(|token| *token += VOCAB_SIZE),
        Corruption::TooMany => tokens.resize(tokens.len() + TOO_MANY, 0),
        Corruption::Empty => tokens.clear(),
        Corruption::PastTheEnd => tokens.insert(0, END_TOKEN),
        Corruption::WrongCount | Corruption::OtherTokens => {}
    }
}
