//! The session, one answer after the other.

mod block;
mod goodput;
mod losses;
mod oracle_and_bild;
mod rounds;
mod sequence_cascade;
mod token_cascade;
mod trees;

use std::time::Duration;

use super::*;
use crate::draft_tree::DraftTree;
use crate::verification::LastToken;

const NOW: Duration = Duration::from_secs(1);

fn config(plan: Plan) -> SessionConfig {
    SessionConfig {
        end_tokens: vec![2],
        last_resort_retries: 2,
        carries_layers: true,
        ..SessionConfig::new(plan, 4, 8, 100)
    }
}

fn session(plan: Plan) -> Session {
    Session::new(config(plan), Duration::ZERO)
}

fn actions(session: &mut Session) -> Vec<Action> {
    std::iter::from_fn(|| session.poll(NOW)).collect()
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

fn drafted(round: u64, tokens: &[TokenId]) -> Input {
    Input::Drafted {
        round,
        block: DraftBlock {
            drafts: tokens.into(),
            stop: DraftStop::Length,
            logprobs: Vec::new(),
            forwards: Vec::new(),
        },
    }
}

fn verified(round: u64, emitted: &[TokenId], accepted: usize, last: LastToken) -> Input {
    Input::Verified {
        round,
        verdict: BlockVerdict {
            emitted: emitted.to_vec(),
            path: (0..accepted as u32).collect(),
            last,
            deferral: Vec::new(),
            layers: Vec::new(),
        },
    }
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
    let mut session = session(Plan::Speculative);
    actions(&mut session);
    session.handle(drafted(1, drafts), NOW);
    let request = Request::Verify {
        drafts: drafts.into(),
        // An end token cut the block of four that was asked for.
        horizon: if drafts.contains(&2) {
            4
        } else {
            drafts.len() as u32
        },
        layers: Vec::new(),
    };
    assert_eq!(actions(&mut session), [send(1, 0, 0, request)]);
    session
}

fn draft(max_tokens: u32) -> Request {
    Request::Draft {
        max_tokens,
        bonus_q: false,
    }
}

fn draft_and_law(max_tokens: u32) -> Request {
    Request::Draft {
        max_tokens,
        bonus_q: true,
    }
}

fn verify(drafts: &[TokenId]) -> Request {
    Request::Verify {
        drafts: drafts.into(),
        horizon: drafts.len() as u32,
        layers: Vec::new(),
    }
}

fn stopped(round: u64, tokens: &[TokenId], stop: DraftStop) -> Input {
    Input::Drafted {
        round,
        block: DraftBlock {
            drafts: tokens.into(),
            stop,
            logprobs: Vec::new(),
            forwards: Vec::new(),
        },
    }
}

fn decoded(round: u64, at: u32, tokens: &[TokenId]) -> Input {
    Input::Decoded {
        round,
        at,
        tokens: tokens.to_vec(),
    }
}

fn emit(origin: Origin, tokens: &[TokenId]) -> Action {
    Action::Emit(tokens.iter().map(|&token| (token, origin)).collect())
}

/// What the session does about `input`.
fn on(session: &mut Session, input: Input) -> Vec<Action> {
    session.handle(input, NOW);
    actions(session)
}
