//! The session, one answer after the other.

mod block;
mod goodput;
mod losses;
mod oracle_and_bild;
mod rounds;
mod scores;
mod sequence_cascade;
mod sparse_drafts;
mod streams;
mod token_cascade;
mod trees;

use std::time::Duration;

use super::*;
use crate::draft_tree::DraftTree;
use crate::drafting::TreeShape;
use crate::verification::layers::ResidualLayer;
use crate::verification::{LastToken, Verdict};

const NOW: Duration = Duration::from_secs(1);

/// Returns a configuration with these limits, and the time limits of a coordinator.
fn limits(plan: Plan, draft_len: u32, max_tokens: u32, vocab_size: u32) -> SessionConfig {
    SessionConfig {
        plan,
        draft_len,
        goodput: None,
        streams: false,
        tree: TreeShape::Chain,
        bonus_q: false,
        lazy_bonus: false,
        depends_on_draft: !matches!(plan, Plan::Speculative | Plan::TargetOnly | Plan::DraftOnly),
        carries_layers: false,
        prompt_scores: 0,
        max_tokens,
        end_tokens: Vec::new(),
        vocab_size,
        round_timeout: Duration::from_secs(30),
        draft_timeout: Duration::from_secs(5),
        retries: 2,
        last_resort_retries: 5,
        retry_pause: Duration::from_millis(20),
        fallback_tokens: 32,
        deadline: None,
    }
}

fn config(plan: Plan) -> SessionConfig {
    SessionConfig {
        end_tokens: vec![2],
        last_resort_retries: 2,
        carries_layers: true,
        ..limits(plan, 4, 8, 100)
    }
}

fn session(plan: Plan) -> Session {
    Session::new(config(plan))
}

fn actions(session: &mut Session) -> Vec<Action> {
    std::iter::from_fn(|| session.poll(NOW)).collect()
}

/// A session whose first request was sent.
fn begin(config: SessionConfig) -> Session {
    let mut session = Session::new(config);
    actions(&mut session);
    session
}

fn send(round: u64, attempt: u32, base_len: u32, request: Request) -> Action {
    Action::Send {
        round,
        attempt,
        base_len,
        request,
    }
}

fn finish(reason: FinishReason) -> [Action; 3] {
    [
        Action::Close(Peer::Drafter),
        Action::Close(Peer::Verifier),
        Action::Finish(reason),
    ]
}

/// A block that nothing but its length ended.
fn block(drafts: impl Into<DraftTree>) -> DraftBlock {
    DraftBlock {
        drafts: drafts.into(),
        stop: DraftStop::Length,
        logprobs: Vec::new(),
        forwards: Vec::new(),
    }
}

fn drafted(round: u64, tokens: &[TokenId]) -> Input {
    let block = block(tokens);
    Input::Drafted { round, block }
}

fn stopped(round: u64, tokens: &[TokenId], stop: DraftStop) -> Input {
    let block = DraftBlock {
        stop,
        ..block(tokens)
    };
    Input::Drafted { round, block }
}

/// A verdict on the nodes of `path`, all of which were accepted.
fn walked(round: u64, emitted: &[TokenId], path: &[u32], last: LastToken) -> Input {
    let verdict = Verdict {
        emitted: emitted.to_vec(),
        path: path.to_vec(),
        last,
        deferral: Vec::new(),
        layers: Vec::new(),
    };
    Input::Verified { round, verdict }
}

fn verified(round: u64, emitted: &[TokenId], accepted: usize, last: LastToken) -> Input {
    let path: Vec<u32> = (0..accepted as u32).collect();
    walked(round, emitted, &path, last)
}

/// The same verdict with the shares of each position that were deferred.
fn deferring(mut input: Input, shares: &[f32]) -> Input {
    if let Input::Verified { verdict, .. } = &mut input {
        verdict.deferral = shares.to_vec();
    }
    input
}

fn failed(round: u64, peer: Peer, retry: bool) -> Input {
    Input::Failed {
        round,
        peer,
        reason: "gone".to_owned(),
        retry,
    }
}

/// Brings a speculative session to where the verifier is asked about `drafts`.
fn verifying(drafts: &[TokenId]) -> Session {
    let mut session = begin(config(Plan::Speculative));
    // An end token cut the block of four that was asked for.
    let is_cut = drafts.contains(&2);
    let horizon = if is_cut { 4 } else { drafts.len() as u32 };
    let requested = on(&mut session, drafted(1, drafts));
    assert_eq!(
        requested,
        [send(1, 0, 0, verify_layered(drafts, horizon, &[]))]
    );
    session
}

fn draft(max_tokens: u32) -> Request {
    Request::Draft {
        max_tokens,
        bonus_q: false,
    }
}

fn draft_with_bonus(max_tokens: u32) -> Request {
    Request::Draft {
        max_tokens,
        bonus_q: true,
    }
}

fn verify_layered(drafts: &[TokenId], horizon: u32, layers: &[ResidualLayer]) -> Request {
    Request::Verify {
        drafts: drafts.into(),
        horizon: horizon.into(),
        layers: layers.to_vec(),
    }
}

fn verify(drafts: &[TokenId]) -> Request {
    verify_layered(drafts, drafts.len() as u32, &[])
}

/// The target goes on alone with `max_tokens` tokens.
fn alone(round: u64, base_len: u32, max_tokens: u32) -> [Action; 1] {
    [send(round, 0, base_len, Request::Decode { max_tokens })]
}

/// An output of which `tokens` are the last, accepted ones.
fn ended(tokens: &[TokenId], reason: FinishReason) -> Vec<Action> {
    let mut expected = vec![emit(Origin::Accepted, tokens)];
    expected.extend(finish(reason));
    expected
}

fn decoded(round: u64, at: u32, tokens: &[TokenId]) -> Input {
    Input::Decoded {
        round,
        at,
        tokens: tokens.to_vec(),
        drafts: None,
    }
}

fn emit(origin: Origin, tokens: &[TokenId]) -> Action {
    Action::Emit(tokens.iter().map(|&token| (token, origin)).collect())
}

/// Returns what was spent, in tokens, and what it came to: draft tokens and forwards of the target, and tokens emitted,
/// discarded and withheld. Once a request is over the two are equal, in every run (Huang et al., "SpecDec++", section 2:
/// drafted + target calls = emitted + discarded, where no end token and no limit cuts an output). While a draft waits
/// for its verdict it stands among what was spent only.
fn balance(statistics: &Statistics) -> (u32, u32) {
    (
        statistics.drafted + statistics.target_forwards,
        statistics.emitted + statistics.discarded + statistics.withheld,
    )
}

/// Returns what the session does about `input`.
fn on(session: &mut Session, input: Input) -> Vec<Action> {
    session.handle(input, NOW);
    actions(session)
}

/// Returns what the session does when its pause is over.
fn resumed(session: &mut Session) -> Vec<Action> {
    let resume = session.poll_timeout().expect("a pause");
    session.handle_timeout(resume);
    actions(session)
}
