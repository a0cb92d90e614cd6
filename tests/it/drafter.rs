//! A drafter and its ways of drafting, asked over its own protocol.

mod cascade;
mod configuration;
mod description;
pub(crate) mod learned;
mod max_gram;
mod progress;
mod reference;
mod refusals;
mod trees;

use std::time::Duration;

use ::drafter::{DrafterConfig, Loaded};
use model::Model;
use model::source::{ModelSource, ServedModel};
use speculation::draft_tree::DraftTree;
use tonic::Status;
use wire::drafting::parents_from_wire;
use wire::v1::draft_length::Policy;
use wire::v1::round_answer::Part;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::{
    DraftBlock, DraftLength, DraftRound, Drafting, LearnedStop, Open, Progress, Proposal,
    RoundAnswer, SamplingParams, StopCause, TreeShape, tree_shape,
};

use crate::cluster::{Service, draft, drafter_of};
use crate::protocol::{SessionStream, open, with_header};

/// A whole draft block.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    drafts: DraftTree,
    proposals: Vec<Proposal>,
    stop: StopCause,
    forwards: Vec<u32>,
    /// Nodes in each message.
    messages: Vec<usize>,
    /// Whether it was drafted for an earlier copy of the request.
    is_replayed: bool,
    /// What was told before it came.
    reported: Vec<Progress>,
}

impl Block {
    fn tokens(&self) -> &[u32] {
        self.drafts.tokens()
    }
}

/// A session's rounds.
struct Rounds {
    stream: SessionStream,
    round: u64,
    timeout: Duration,
}

impl Rounds {
    async fn open(drafter: &Service, opening: Open) -> Self {
        let stream = SessionStream::draft(drafter.url(), opening).await;
        Self {
            stream: stream.expect("a session in order").0,
            round: 0,
            timeout: Duration::from_secs(5),
        }
    }

    /// Asks for a block after the output `committed`.
    async fn try_ask(&mut self, committed: &[u32], requested: DraftRound) -> Result<Block, Status> {
        self.round += 1;
        let mut round = with_header(requested, self.round, committed);
        round.header.get_or_insert_default().timeout_ms = self.timeout.as_millis() as u32;
        self.stream.send(Request::Round(round)).await;
        let (mut parts, mut reported) = (Vec::new(), Vec::new());
        loop {
            match self.stream.receive().await? {
                Reply::Answer(RoundAnswer {
                    part: Some(Part::Block(block)),
                    ..
                }) => {
                    let last = block.last;
                    parts.push(block);
                    if last {
                        return Ok(whole(parts, reported, self.stream.header().replayed));
                    }
                }
                Reply::Progress(progress) => reported.push(progress),
                other => panic!("another reply: {other:?}"),
            }
        }
    }

    async fn ask(&mut self, committed: &[u32], requested: DraftRound) -> Block {
        let requested = self.try_ask(committed, requested).await;
        requested.expect("a round in order")
    }
}

fn whole(parts: Vec<DraftBlock>, reported: Vec<Progress>, is_replayed: bool) -> Block {
    let (mut tokens, mut parents, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    let mut proposals = Vec::new();
    let last = parts.last().expect("a message").clone();
    for part in parts {
        assert_eq!(part.offset as usize, tokens.len());
        let tree = part.tree.unwrap_or_default();
        messages.push(tree.token_ids.len());
        tokens.extend(tree.token_ids);
        parents.extend(parents_from_wire(&tree.parents).expect("parents"));
        proposals.extend(part.proposals);
    }
    Block {
        drafts: DraftTree::new(tokens, parents).expect("a tree"),
        proposals,
        stop: last.stop_cause(),
        is_replayed,
        forwards: last.forwards,
        messages,
        reported,
    }
}

fn requested(drafting: Drafting, max_tokens: u32) -> DraftRound {
    DraftRound {
        max_tokens,
        drafting: drafting.into(),
        ..Default::default()
    }
}

fn policy(policy: Policy) -> DraftLength {
    DraftLength {
        policy: Some(policy),
    }
}

fn learned(threshold: f64, min_tokens: u32) -> DraftLength {
    policy(Policy::Learned(LearnedStop {
        threshold,
        min_tokens,
    }))
}

fn tree(shape: tree_shape::Shape) -> TreeShape {
    TreeShape { shape: Some(shape) }
}

/// The embedded draft model, with its acceptance heads.
fn draft_with_heads() -> ServedModel<Model> {
    let draft = ModelSource::embedded("draft").load();
    draft.expect("the embedded draft")
}

/// The smaller embedded draft model.
pub(crate) fn smaller() -> ServedModel<Model> {
    let mut source = ModelSource::embedded("small");
    "smaller".clone_into(&mut source.name);
    source.load().expect("the smaller embedded draft model")
}

/// Starts a drafter of `models`, the largest first.
pub(crate) async fn drafter(
    models: Vec<ServedModel<Model>>,
    configure: impl FnOnce(&mut DrafterConfig),
) -> Service {
    let mut config = DrafterConfig::default();
    configure(&mut config);
    let loaded = Loaded::of(models, &config).expect("a configuration in order");
    drafter_of(loaded, config).await.0
}

/// A drafter of Max-Gram and nothing else.
pub(crate) async fn max_gram_alone() -> Service {
    let mut config = DrafterConfig::default();
    "none".clone_into(&mut config.model.path);
    let loaded = Loaded::load(&config).expect("a configuration in order");
    drafter_of(loaded, config).await.0
}

/// The embedded draft model, a smaller one, and Max-Gram.
async fn three() -> Service {
    drafter(vec![draft(), smaller()], |_| {}).await
}

/// The same, where the embedded draft model has its acceptance heads.
pub(crate) async fn three_with_heads() -> Service {
    drafter(vec![draft_with_heads(), smaller()], |_| {}).await
}

/// Ways to draw that take different paths through the pipeline: penalties count what was drafted.
fn samplings() -> Vec<SamplingParams> {
    let at = |temperature| SamplingParams {
        temperature: Some(temperature),
        ..Default::default()
    };
    let penalised = SamplingParams {
        repetition_penalty: Some(1.4),
        frequency_penalty: 0.5,
        top_k: 50,
        min_tokens: 40,
        ..at(0.7)
    };
    vec![at(0.0), at(1.0), penalised]
}

/// An opening under `sampling`, whose output ends at the usual token.
fn opening(sampling: &SamplingParams, change: impl FnOnce(&mut Open)) -> Open {
    open(|open| {
        open.sampling = Some(sampling.clone());
        open.end_token_ids = vec![2];
        change(open);
    })
}
