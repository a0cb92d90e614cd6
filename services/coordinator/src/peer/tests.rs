//! Rounds over streams in memory: what is sent, what of what comes is taken, and what it is made of.

mod blocks;
mod drafts;
mod losses;
mod moves;

use std::pin::Pin;
use std::time::Duration;

use fleet::{Beginning, PeerEndpoint, PeerFault, PeerQuery};
use net::Credentials;
use speculation::methods::MethodSpec;
use speculation::session::DraftStop;
use text::ServedText;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use v1::round_answer::Part;
use v1::round_request::Round;
use v1::session_reply::Reply;
use v1::session_request::Request as SessionRequest;
use wire::v1::{self, generate_request};

use super::stream::PeerStream;
use super::*;
use crate::config::CoordinatorConfig;

const SESSION: [u8; 16] = [7; 16];

/// Three words.
const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null, "decoder": null,
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "truncation": null, "padding": null,
    "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2}}}"#;

fn description(context_len: u32, max_draft_tokens: u32) -> v1::PeerDescription {
    v1::PeerDescription {
        context_len,
        vocab_size: 3,
        limits: Some(v1::PeerLimits {
            max_draft_tokens,
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The other end of a stream.
struct Wire {
    requests: mpsc::Receiver<v1::SessionRequest>,
    replies: mpsc::Sender<Result<v1::SessionReply, Status>>,
}

/// The peers of a request for `message` at a target that takes 8 draft tokens.
fn peers(configure: impl FnOnce(&mut v1::GenerateRequest)) -> Peers {
    let mut config = CoordinatorConfig::default();
    // Nobody is there.
    config.models[0].drafters = [1, 2, 3]
        .map(|port| format!("http://127.0.0.1:{port}"))
        .into();
    let models = config
        .connect(&Credentials::default())
        .expect("a configuration");
    let model = Arc::clone(models.find("").expect("the default model"));
    let served = ServedText::new(TOKENIZER.as_bytes(), v1::TokenizerPart::default());
    let text = Arc::new(served.expect("a tokenizer"));
    let target = Target::new(Arc::new(description(100, 8)), text);
    let prompt = v1::TokenIds { ids: vec![1, 2] };
    let mut message = v1::GenerateRequest {
        prompt: Some(generate_request::Prompt::TokenIds(prompt)),
        max_tokens: Some(20),
        ..Default::default()
    };
    configure(&mut message);
    let calls = crate::request::Calls::take(&mut message, &target, None);
    let mut calls = calls.expect("no tools");
    let prompt = crate::request::PromptInput::take(&mut message, &target, &mut calls);
    let prompt = prompt.expect("a prompt");
    let unasked = crate::request::Unasked {
        max_tokens: u32::MAX,
        settings: Vec::new(),
        leaves_drafting_open: false,
        names_drafting: false,
    };
    let request = crate::request::check(message, prompt, calls, &model, &target, &config, &unasked);
    Peers::new(Arc::new(request.expect("in range")), model, target, SESSION)
}

/// Sets these settings of a request's method, those that are empty apart.
fn choosing(request: &mut v1::GenerateRequest, settings: &[(&str, &str)]) {
    let given = settings.iter().filter(|(_, text)| !text.is_empty());
    let spec = given.fold(MethodSpec::default(), |spec, (name, text)| {
        spec.with(name, *text)
    });
    wire::settings::to_wire(&spec, request);
}

/// A session at a peer that describes itself so, and its other end.
async fn session(
    peers: &Peers,
    peer: Peer,
    description: v1::PeerDescription,
) -> (PeerSession, Wire) {
    let query = PeerQuery {
        peer,
        session: SESSION,
        requirements: None,
        draft_model: None,
        beginning: Beginning::default(),
    };
    let endpoint = peers.opener.model.pick(&query).await.expect("an address");
    let (stream, wire) = stream(peers, endpoint, description);
    (PeerSession::at(peer, stream), wire)
}

/// A stream to a peer that describes itself so, and its other end.
fn stream(
    peers: &Peers,
    endpoint: Arc<PeerEndpoint>,
    description: v1::PeerDescription,
) -> (PeerStream, Wire) {
    let (sent, requests) = mpsc::channel(4);
    let (replies, received) = mpsc::channel(16);
    let received = Box::pin(ReceiverStream::new(received));
    let stream = PeerStream::over(
        endpoint,
        description,
        sent,
        received,
        Arc::clone(&peers.opener.traffic),
    );
    (stream, Wire { requests, replies })
}

fn draft(max_tokens: u32) -> PendingRequest {
    let request = Request::Draft {
        max_tokens,
        bonus_q: false,
    };
    PendingRequest::new(3, request)
}

fn verify(drafts: &[TokenId], horizon: u32) -> PendingRequest {
    let request = Request::Verify {
        drafts: drafts.into(),
        horizon: horizon.into(),
        layers: Vec::new(),
    };
    PendingRequest::new(3, request)
}

/// Five output tokens, three of which were emitted, and two seconds to answer.
fn position(output: &[TokenId]) -> RoundPosition<'_> {
    RoundPosition {
        round: 3,
        deadline: Deadline {
            until: Instant::now() + Duration::from_secs(2),
            is_short: false,
        },
        output,
        emitted: 3,
        worth: None,
        trace: None,
    }
}

const OUTPUT: [TokenId; 5] = [0, 1, 2, 1, 0];

/// The header of a round, and what is asked.
fn round(request: Option<v1::SessionRequest>) -> (v1::RoundHeader, Round) {
    match request.expect("a request").request {
        Some(SessionRequest::Round(round)) => (
            round.header.expect("a header"),
            round.round.expect("a round"),
        ),
        other => panic!("{other:?}"),
    }
}

fn drafting(request: Option<v1::SessionRequest>) -> (v1::RoundHeader, v1::DraftRound) {
    match round(request) {
        (header, Round::Draft(round)) => (header, round),
        other => panic!("{other:?}"),
    }
}

fn verifying(request: Option<v1::SessionRequest>) -> (v1::RoundHeader, v1::VerifyRound) {
    match round(request) {
        (header, Round::Verify(round)) => (header, round),
        other => panic!("{other:?}"),
    }
}

fn answering(header: &v1::RoundHeader) -> v1::ReplyHeader {
    v1::ReplyHeader {
        round: header.round,
        epoch: header.epoch,
        digest: header.digest,
        ..Default::default()
    }
}

/// A part of the answer to the round with this header.
fn answer(header: v1::ReplyHeader, part: Part) -> v1::SessionReply {
    let answer = v1::RoundAnswer {
        header: Some(header),
        part: Some(part),
    };
    Reply::Answer(answer).into()
}

fn block(header: v1::ReplyHeader, token_ids: &[TokenId]) -> v1::SessionReply {
    let tree = v1::TokenTree {
        token_ids: token_ids.to_vec(),
        parents: Vec::new(),
    };
    let block = v1::DraftBlock {
        tree: Some(tree),
        last: true,
        stop_cause: v1::StopCause::Length.into(),
        ..Default::default()
    };
    answer(header, Part::Block(block))
}

fn need_from(header: v1::ReplyHeader, from: u32) -> v1::SessionReply {
    let need = v1::NeedFrom {
        header: Some(header),
        from,
    };
    Reply::NeedFrom(need).into()
}

/// Answers the one request at `wire` with what `reply` makes of its header.
async fn replying(
    wire: &mut Wire,
    reply: impl FnOnce(v1::ReplyHeader) -> Vec<v1::SessionReply>,
) -> (v1::RoundHeader, v1::DraftRound) {
    let (header, round) = drafting(wire.requests.recv().await);
    for reply in reply(answering(&header)) {
        wire.replies.send(Ok(reply)).await.expect("awaited");
    }
    (header, round)
}

/// Awaits `future`, which waits for nothing that is not on its way.
fn soon<'a, T: 'a>(future: impl Future<Output = T> + 'a) -> Pin<Box<dyn Future<Output = T> + 'a>> {
    let limit = Duration::from_secs(5);
    Box::pin(async move { tokio::time::timeout(limit, future).await.expect("in time") })
}

fn drafted(answer: Result<PeerAnswer, CallFailure>) -> (Vec<TokenId>, DraftStop) {
    match answer.expect("an answer").input {
        Input::Drafted { block, .. } => (block.drafts.tokens().to_vec(), block.stop),
        other => panic!("{other:?}"),
    }
}

/// A request and its session at a drafter that describes itself so.
async fn at_drafter(description: v1::PeerDescription) -> (Peers, Wire) {
    requesting(|_| {}, description).await
}

/// A request made with `configure` and its session at a drafter with this description.
async fn requesting(
    configure: impl FnOnce(&mut v1::GenerateRequest),
    description: v1::PeerDescription,
) -> (Peers, Wire) {
    let mut peers = peers(configure);
    let (session, wire) = session(&peers, Peer::Drafter, description).await;
    peers.drafter = session;
    (peers, wire)
}

/// Awaits the answer of a drafter that answers with what `reply` makes of the request's header; and the request.
async fn exchange(
    peers: &mut Peers,
    wire: &mut Wire,
    requested: &mut PendingRequest,
    reply: impl FnOnce(v1::ReplyHeader) -> Vec<v1::SessionReply>,
) -> (
    Result<PeerAnswer, CallFailure>,
    (v1::RoundHeader, v1::DraftRound),
) {
    let others = RoundProposals::default();
    let answer = peers.answer(requested, position(&OUTPUT), &others);
    let replies = replying(wire, reply);
    soon(async { tokio::join!(answer, replies) }).await
}
