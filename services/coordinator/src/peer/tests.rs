//! Rounds over streams in memory: what is sent, what of what comes is taken, and what it is made of.

use std::pin::Pin;
use std::time::Duration;

use server::process::Process;
use speculation::session::DraftStop;
use text::ServedText;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use wire::describe::PROGRESS;
use wire::messages::Messages;
use wire::v1::{self, generate_request, verify_reply};

use super::pool::{Models, Wanted};
use super::stream::PeerStream;
use super::*;
use crate::config::CoordinatorConfig;
use crate::events::Fault;

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
        features: vec![PROGRESS.to_owned()],
        ..Default::default()
    }
}

/// The other end of a stream.
struct Wire<P: Messages> {
    requests: mpsc::Receiver<P::Request>,
    replies: mpsc::Sender<Result<P::Reply, Status>>,
}

/// The peers of a request for `message` at a target that takes 8 draft tokens.
fn peers(configure: impl FnOnce(&mut v1::GenerateRequest)) -> Peers {
    let config = CoordinatorConfig::default();
    let models = Models::new(&config, &Process::default()).expect("a configuration");
    let model = Arc::clone(models.find("").expect("the default model"));
    let served = ServedText::new(TOKENIZER.as_bytes(), v1::TokenizerPart::default());
    let target = Target {
        description: Arc::new(description(100, 8)),
        text: Arc::new(served.expect("a tokenizer")),
    };
    let prompt = v1::TokenIds { ids: vec![1, 2] };
    let mut message = v1::GenerateRequest {
        prompt: Some(generate_request::Prompt::TokenIds(prompt)),
        max_tokens: Some(20),
        ..Default::default()
    };
    configure(&mut message);
    let request = crate::request::check(message, &model, &target, &config);
    Peers::new(Arc::new(request.expect("in range")), model, target, SESSION)
}

/// A session at a peer that describes itself so, and its other end.
async fn session<P: protocol::Protocol + Default>(
    peers: &Peers,
    description: v1::PeerDescription,
) -> (PeerSession<P>, Wire<P>)
where
    P::Reply: Send,
{
    let wanted = Wanted {
        peer: P::PEER,
        session: SESSION,
        requirements: None,
    };
    let endpoint = peers.opener.model.pick(&wanted).await.expect("an address");
    let (sent, requests) = mpsc::channel(4);
    let (replies, received) = mpsc::channel(16);
    let received = Box::pin(ReceiverStream::new(received));
    let stream = PeerStream::over(endpoint, description, sent, received);
    (PeerSession::at(stream), Wire { requests, replies })
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
        horizon,
        layers: Vec::new(),
    };
    PendingRequest::new(3, request)
}

/// Five output tokens, three of which were emitted, and two seconds to answer.
fn position(output: &[TokenId]) -> Position<'_> {
    Position {
        round: 3,
        allowance: Allowance {
            until: Instant::now() + Duration::from_secs(2),
            is_short: false,
        },
        output,
        emitted: 3,
        trace: None,
    }
}

const OUTPUT: [TokenId; 5] = [0, 1, 2, 1, 0];

/// The header of a draft request.
fn drafting(request: Option<v1::DraftRequest>) -> (v1::RoundHeader, v1::DraftRound) {
    match request.expect("a request").request {
        Some(v1::draft_request::Request::Round(mut round)) => {
            (round.header.take().expect("a header"), round)
        }
        other => panic!("{other:?}"),
    }
}

fn verifying(request: Option<v1::VerifyRequest>) -> (v1::RoundHeader, v1::VerifyRound) {
    match request.expect("a request").request {
        Some(v1::verify_request::Request::Round(mut round)) => {
            (round.header.take().expect("a header"), round)
        }
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

fn block(header: v1::ReplyHeader, token_ids: &[TokenId]) -> v1::DraftReply {
    let tree = v1::TokenTree {
        token_ids: token_ids.to_vec(),
        parents: Vec::new(),
    };
    let block = v1::DraftBlock {
        header: Some(header),
        tree: Some(tree),
        last: true,
        stop_cause: v1::StopCause::Length.into(),
        ..Default::default()
    };
    v1::DraftReply {
        reply: Some(v1::draft_reply::Reply::Block(block)),
    }
}

fn need_from(header: v1::ReplyHeader, from: u32) -> v1::DraftReply {
    let need = v1::NeedFrom {
        header: Some(header),
        from,
    };
    v1::DraftReply {
        reply: Some(v1::draft_reply::Reply::NeedFrom(need)),
    }
}

/// Answers the one request at `wire` with what `reply` makes of its header.
async fn replying(
    wire: &mut Wire<Drafting>,
    reply: impl FnOnce(v1::ReplyHeader) -> Vec<v1::DraftReply>,
) -> (v1::RoundHeader, v1::DraftRound) {
    let (header, round) = drafting(wire.requests.recv().await);
    for reply in reply(answering(&header)) {
        wire.replies.send(Ok(reply)).await.expect("awaited");
    }
    (header, round)
}

/// What comes of `future`, which waits for nothing that is not on its way.
fn soon<'a, T: 'a>(future: impl Future<Output = T> + 'a) -> Pin<Box<dyn Future<Output = T> + 'a>> {
    let limit = Duration::from_secs(5);
    Box::pin(async move { tokio::time::timeout(limit, future).await.expect("in time") })
}

fn drafted(answer: Result<Answer, Failure>) -> (Vec<TokenId>, DraftStop) {
    match answer.expect("an answer").input {
        Input::Drafted { block, .. } => (block.drafts.tokens().to_vec(), block.stop),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_what_answers_this_very_request_is_taken() {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, description(100, 8)).await;
    peers.drafter = session;
    let mut asked = draft(2);
    let others = RoundProposals::default();
    let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| {
        let mut left_over = [header; 3];
        left_over[0].digest ^= 1;
        left_over[1].round -= 1;
        left_over[2].epoch += 1;
        let left_over = left_over.into_iter().map(|header| block(header, &[1, 1]));
        left_over.chain([block(header, &[2, 0])]).collect()
    });
    let (answer, (header, round)) = tokio::join!(answer, replies);
    assert_eq!(drafted(answer), (vec![2, 0], DraftStop::Length));
    assert_eq!((header.round, round.max_tokens), (3, 2));
}

#[tokio::test]
async fn a_peer_is_told_the_time_that_is_left_for_it() {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, description(100, 8)).await;
    peers.drafter = session;
    let mut asked = draft(2);
    let others = RoundProposals::default();
    let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
    let (_, (header, _)) = tokio::join!(answer, replies);
    assert!(
        (1_000..=2_000).contains(&header.timeout_ms),
        "{}",
        header.timeout_ms
    );
}

/// The drafter holds what it drafted; the output of which it knows only what was emitted.
#[tokio::test]
async fn what_was_not_emitted_is_sent_again() {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, description(100, 8)).await;
    peers.drafter = session;
    let others = RoundProposals::default();
    for from_len in [0, 3] {
        let mut asked = draft(2);
        let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
        let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
        let (answer, (header, _)) = tokio::join!(answer, replies);
        drafted(answer);
        assert_eq!(header.from_len, from_len);
        assert_eq!(header.committed, OUTPUT[from_len as usize..]);
    }
}

#[tokio::test]
async fn a_peer_that_holds_too_little_gets_it_twice_and_then_is_broken() {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, description(100, 8)).await;
    peers.drafter = session;
    let others = RoundProposals::default();
    let mut before = draft(2);
    let answer = peers.answer(&mut before, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
    drafted(soon(async { tokio::join!(answer, replies) }).await.0);
    let mut asked = draft(2);
    let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
    let replies = async {
        let mut from_lens = Vec::new();
        for from in [5, 1, 0] {
            let replies = replying(&mut wire, |header| vec![need_from(header, from)]);
            from_lens.push(replies.await.0.from_len);
        }
        from_lens
    };
    let (answer, from_lens) = soon(async { tokio::join!(answer, replies) }).await;
    // Never from beyond the three tokens that it was known to hold.
    assert_eq!(from_lens, [3, 3, 1]);
    let failure = answer.expect_err("it keeps asking");
    assert_eq!(failure.error.fault(), Fault::Malformed);
}

/// A peer from before there was progress may have the whole prompt to read, once.
#[tokio::test]
async fn one_that_does_not_tell_of_its_progress_has_more_time_for_a_prompt() {
    let mut peers = peers(|_| {});
    let mut before = description(100, 8);
    before.features.clear();
    let (session, mut wire) = session(&peers, before).await;
    peers.drafter = session;
    let others = RoundProposals::default();
    let mut asked = draft(2);
    let longer = soon(peers.answer(&mut asked, position(&OUTPUT), &others)).await;
    let Input::Progress { allowance, .. } = longer.expect("more time").input else {
        panic!("no more time");
    };
    // Two tokens of the prompt and five of the output.
    assert_eq!(allowance, Duration::from_millis(70));
    let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
    drafted(tokio::join!(answer, replies).0);
    let mut next = draft(2);
    let answer = peers.answer(&mut next, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
    drafted(tokio::join!(answer, replies).0);
}

/// What a drafter is asked for after a sequence of seven tokens, if its context holds so many.
async fn asked_with_context(context_len: u32, asked: (u32, bool)) -> Result<u32, Fault> {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, description(context_len, 8)).await;
    peers.drafter = session;
    let (max_tokens, bonus_q) = asked;
    let request = Request::Draft {
        max_tokens,
        bonus_q,
    };
    let mut asked = PendingRequest::new(3, request);
    let others = RoundProposals::default();
    let found = async {
        tokio::select! {
            answer = peers.answer(&mut asked, position(&OUTPUT), &others) => {
                Err(answer.expect_err("nobody answered").error.fault())
            }
            request = wire.requests.recv() => Ok(drafting(request).1.max_tokens),
        }
    };
    soon(found).await
}

#[tokio::test]
async fn a_drafter_is_asked_for_what_its_context_has_room_for() {
    let full = Err(Fault::ContextFull);
    for (context_len, asked, expected) in [
        // The last token needs no place if nothing comes after it.
        (9, (5, false), Ok(3)),
        (9, (5, true), Ok(2)),
        (7, (5, false), Ok(1)),
        // The distribution after the sequence, and no token.
        (7, (5, true), Ok(0)),
        (7, (0, true), Ok(0)),
        (6, (5, false), full),
        (6, (0, true), full),
        (20, (5, true), Ok(5)),
    ] {
        let found = asked_with_context(context_len, asked).await;
        assert_eq!(found, expected, "{asked:?} of {context_len}");
    }
}

#[tokio::test]
async fn a_draft_that_its_context_has_no_room_for_ends_with_the_context() {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, description(9, 8)).await;
    peers.drafter = session;
    let mut asked = draft(5);
    let others = RoundProposals::default();
    let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| vec![block(header, &[2, 0, 1])]);
    let (answer, _) = soon(async { tokio::join!(answer, replies) }).await;
    assert_eq!(drafted(answer), (vec![2, 0, 1], DraftStop::Context));
}

#[tokio::test]
async fn a_block_longer_than_the_verifier_takes_is_not_sent() {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, description(100, 2)).await;
    peers.verifier = session;
    let mut asked = verify(&[1, 2, 0], 3);
    let others = RoundProposals::default();
    let answer = soon(peers.answer(&mut asked, position(&OUTPUT), &others)).await;
    let input = answer.expect("an answer").input;
    assert!(
        matches!(
            input,
            Input::Limited {
                max_draft_tokens: 2,
                ..
            }
        ),
        "{input:?}"
    );
    assert!(wire.requests.try_recv().is_err());
}

/// A block of two tokens, of five that were asked for: an end token cut it.
async fn proposals_of_a_cut_block(peers: &mut Peers) -> RoundProposals {
    let (session, mut wire) = session(peers, description(100, 8)).await;
    peers.drafter = session;
    let mut asked = draft(5);
    let others = RoundProposals::default();
    let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
    let (answer, _) = tokio::join!(answer, replies);
    answer.expect("an answer").proposals
}

#[tokio::test]
async fn the_horizon_outlives_a_block_that_an_end_token_cut() {
    let mut peers = peers(|_| {});
    let proposals = proposals_of_a_cut_block(&mut peers).await;
    let (session, mut wire) = session(&peers, description(100, 8)).await;
    peers.verifier = session;
    for (wanted, horizon) in [(5, Some(5)), (4, Some(4)), (9, Some(5)), (2, None)] {
        let mut asked = verify(&[2, 0], wanted);
        let answer = peers.answer(&mut asked, position(&OUTPUT), &proposals);
        let request = async { verifying(wire.requests.recv().await).1.horizon };
        let found = tokio::select! {
            _answer = answer => panic!("nobody answered"),
            found = request => found,
        };
        assert_eq!(found, horizon, "{wanted}");
    }
}

/// Where the coordinator decides it needs the same horizon.
#[tokio::test]
async fn a_block_scored_for_the_coordinator_has_the_horizon_too() {
    let mut peers = peers(|message| {
        message.accept_at = v1::AcceptAt::Coordinator.into();
    });
    let proposals = proposals_of_a_cut_block(&mut peers).await;
    let (mut verifier, _wire) = session(&peers, description(100, 8)).await;
    let asked = verify(&[2, 0], 9).request;
    let Request::Verify {
        drafts,
        horizon,
        layers,
    } = &asked
    else {
        panic!("{asked:?}");
    };
    let block = (drafts, *horizon, &layers[..]);
    let position = position(&OUTPUT);
    let opener = &mut peers.opener;
    let started = PendingVerify::start(&mut verifier, opener, position, block, &proposals).await;
    let scored = started.expect("sent").scored(&asked, position, &proposals);
    assert_eq!(scored.expect("a block").horizon, 5);
}

#[tokio::test]
async fn slices_that_go_on_beyond_the_block_are_no_answer() {
    let slice = |header: &v1::RoundHeader| v1::VerifyReply {
        reply: Some(verify_reply::Reply::Slice(v1::Slice {
            header: Some(answering(header)),
            ..Default::default()
        })),
    };
    let mut peers = peers(|message| {
        message.accept_at = v1::AcceptAt::Coordinator.into();
    });
    let (session, mut wire) = session(&peers, description(100, 8)).await;
    peers.verifier = session;
    let others = RoundProposals::default();
    let mut asked = verify(&[2, 0], 2);
    let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
    let replies = async {
        let (header, _) = verifying(wire.requests.recv().await);
        for _ in 0..3 {
            let sent = wire.replies.send(Ok(slice(&header))).await;
            sent.expect("awaited");
        }
    };
    let (answer, ()) = soon(async { tokio::join!(answer, replies) }).await;
    let failure = answer.expect_err("the third was not the last");
    assert_eq!(failure.error.fault(), Fault::Malformed);
}

#[tokio::test]
async fn bytes_of_streams_that_are_gone_count() {
    for loss in [Loss::Silent, Loss::Stalled, Loss::Broken, Loss::Malformed] {
        let mut peers = peers(|_| {});
        let (session, mut wire) = session(&peers, description(100, 8)).await;
        peers.drafter = session;
        let mut asked = draft(2);
        let others = RoundProposals::default();
        let answer = peers.answer(&mut asked, position(&OUTPUT), &others);
        let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
        drafted(soon(async { tokio::join!(answer, replies) }).await.0);
        let before = peers.traffic().rounds;
        assert!(before > 0);
        peers.give_up(Peer::Drafter, loss);
        assert_eq!(peers.traffic().rounds, before, "{loss:?}");
        peers.close(Peer::Drafter);
        assert_eq!(peers.traffic().rounds, before, "{loss:?}");
    }
}
