//! A drafter or a verifier: what it remembers between requests, and how it answers.

use std::time::Duration;

use outrider_tests::toy::ToyModel;
use peer::replies::ReplyCache;
use speculation::TokenId;
use speculation::committed::Committed;
use speculation::proposal::Proposal;
use speculation::session::{Peer, Plan, Request};
use speculation::verification::Verdict;

use crate::case::{Case, MOST_DRAFTED};
use crate::decodes::Decodes;
use crate::decoding::Beginning;
use crate::message::{Answer, Ask};
use crate::sequence::{BlockRequest, Sequence};

/// A block as the verifier saw it, and what it made of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) round: u64,
    pub(crate) base_len: u32,
    pub(crate) drafts: Vec<TokenId>,
    pub(crate) verdict: Verdict,
}

/// What a cached reply is found by.
type Key = (u64, u32, Request, Vec<Proposal>);

/// What a crash takes away.
#[derive(Default)]
struct Memory {
    committed: Committed,
    replies: ReplyCache<Key, Answer>,
}

/// A simulated service.
pub(crate) struct SimPeer<'a> {
    case: &'a Case,
    model: ToyModel,
    /// What it decodes with drafts as they come.
    pub(crate) decodes: Decodes<'a>,
    /// The model of the peer that replaces it.
    other_model: ToyModel,
    pub(crate) is_another: bool,
    memory: Memory,
    /// How often it lost its memory so far.
    losses: usize,
    /// How often it held too little.
    pub(crate) needs: u32,
    /// Every block it decided, in order; those answered from the replies kept do not count.
    pub(crate) decisions: Vec<Decision>,
}

impl<'a> SimPeer<'a> {
    pub(crate) fn new(case: &'a Case, peer: Peer) -> Self {
        Self {
            case,
            model: case.model(peer),
            decodes: Decodes::new(case),
            other_model: case.other_model(),
            is_another: false,
            memory: Memory::default(),
            losses: 0,
            needs: 0,
            decisions: Vec::new(),
        }
    }

    /// Forgets everything if it crashed or became another since; `losses` is how often it did so far.
    pub(crate) fn note(&mut self, losses: usize, is_another: bool) {
        if losses != self.losses {
            self.losses = losses;
            self.memory = Memory::default();
            self.decodes.end();
        }
        self.is_another = is_another;
    }

    /// Lets the decode under way come to what is due at `now`. Returns what it says, and in which round.
    pub(crate) fn go_on(&mut self, now: Duration) -> Option<(u64, Answer)> {
        let model = if self.is_another {
            &self.other_model
        } else {
            &self.model
        };
        self.decodes.go_on(model, now)
    }

    /// The answers to `ask` at `now`, in order.
    pub(crate) fn answer(&mut self, ask: Ask, now: Duration) -> Vec<Answer> {
        let (base_len, until) = (ask.base_len(), ask.granted);
        // The target decodes in a sequence cascade where its response takes the place of the draft model's.
        let is_second = matches!(self.case.plan, Plan::SequenceCascade { .. })
            && matches!(ask.request, Request::Decode { .. });
        let key = (ask.round, base_len, ask.request, ask.proposals);
        if let Some(kept) = self.memory.replies.find(&key) {
            return vec![kept.clone()];
        }
        let committed = &mut self.memory.committed;
        if let Err(need) = committed.replace_from(ask.from_len, &ask.committed) {
            self.needs += 1;
            return vec![Answer::NeedFrom(need.from)];
        }
        let noise = self.case.noise(is_second);
        let model = if self.is_another {
            &self.other_model
        } else {
            &self.model
        };
        let sequence = Sequence::new(self.case, model, noise, committed.tokens());
        let (round, _, request, proposals) = &key;
        let answer = match request {
            Request::Draft {
                max_tokens,
                bonus_q,
            } => sequence.draft((*max_tokens).min(MOST_DRAFTED), *bonus_q),
            Request::Verify { drafts, .. } if !drafts.is_chain() => {
                let verdict = sequence.walk(drafts);
                self.decisions.push(Decision {
                    round: *round,
                    base_len,
                    drafts: drafts.tokens().to_vec(),
                    verdict: verdict.clone(),
                });
                Answer::Verified { verdict }
            }
            Request::Verify {
                drafts,
                horizon,
                layers,
            } => match sequence.verify(
                &BlockRequest {
                    drafts: drafts.tokens(),
                    horizon: *horizon,
                    layers,
                },
                proposals,
            ) {
                Ok(verdict) => {
                    self.decisions.push(Decision {
                        round: *round,
                        base_len,
                        drafts: drafts.tokens().to_vec(),
                        verdict: verdict.clone(),
                    });
                    Answer::Verified { verdict }
                }
                Err(error) => {
                    let reason = error.to_string();
                    return vec![Answer::Refused {
                        reason,
                        retry: false,
                    }];
                }
            },
            Request::Decode { max_tokens } if self.case.streams => {
                let beginning = Beginning {
                    round: *round,
                    output: committed.tokens().to_vec(),
                    max_tokens: *max_tokens,
                    until,
                };
                self.decodes.begin(beginning, now);
                return Vec::new();
            }
            Request::Decode { max_tokens } => {
                // Streamed and not kept: a repeated request begins where the output stands by then.
                return decoded(base_len, sequence.decode(*max_tokens));
            }
            Request::Score { from } => return scored(*from, self.case.prompt_scores),
        };
        self.memory.replies.keep(key, answer.clone());
        vec![answer]
    }
}

/// The scores from `from` to `wanted`, two an answer.
fn scored(from: u32, wanted: u32) -> Vec<Answer> {
    let parts = (from..wanted).step_by(2);
    parts
        .map(|from| Answer::Scored {
            from,
            count: (wanted - from).min(2),
        })
        .collect()
}

/// One answer a token.
fn decoded(base_len: u32, tokens: Vec<TokenId>) -> Vec<Answer> {
    let answers = (base_len..).zip(tokens);
    answers
        .map(|(at, token)| Answer::Decoded {
            at,
            tokens: vec![token],
            drafts: None,
        })
        .collect()
}
