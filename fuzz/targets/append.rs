//! A verifier that is proposed anything at all while it decodes: its tokens are the target's own, and what it keeps of the
//! proposals is a bounded tree.

#![no_main]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::{Corpus, fuzz_target};
use outrider_fuzz::input::Appends;
use outrider_fuzz::models::{END, VOCAB_SIZE};
use outrider_fuzz::services::{RUNTIME, VERIFIER, channel};
use prost::Message;
use speculation::pending::{Bounds, PendingTree, ProposedTree, ROOM, Trust};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use wire::round::digest;
use wire::v1::round_answer::Part;
use wire::v1::round_request::Round;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{
    Append, Close, DecodeRound, Grant, Open, RoundHeader, RoundRequest, SessionReply,
    SessionRequest,
};
use wire::{pending, v1};

/// Output tokens that are decoded.
const MAX_TOKENS: u32 = 24;

/// Tokens granted before the first proposal, and with each.
const FIRST: u32 = 3;
const FURTHER: u32 = 2;

/// Most proposals of an input that are sent.
const MOST: usize = 12;

/// The target's own tokens.
static OWN: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let (tokens, ended) = decode(&[]);
    ended.expect("decoded without a proposal");
    tokens
});

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(appends) = Appends::decode(bytes) else {
        return Corpus::Reject;
    };
    let own = &*OWN;
    let mut appends = appends.with_own(own);
    appends.truncate(MOST);
    keeps_a_tree(&appends, own);
    let is_sound = |append: &Append| pending::from_wire(append.clone()).is_ok();
    let are_sound = appends.iter().all(is_sound);
    let (tokens, ended) = decode(&appends);
    match ended {
        Ok(()) => assert_eq!(&tokens, own),
        Err(status) => {
            assert!(!are_sound, "{status:?}");
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
            assert!(status.message().starts_with("append."), "{status:?}");
            assert!(own.starts_with(&tokens));
        }
    }
    Corpus::Keep
});

/// Decodes on a session of its own: the first tokens, then some more with each proposal, then the rest. Returns the tokens
/// that came, and why no more came, if the stream was refused.
fn decode(appends: &[Append]) -> (Vec<u32>, Result<(), Status>) {
    let mut tokens = Vec::new();
    let client = VerifierClient::new(channel(&VERIFIER));
    let ended = RUNTIME.block_on(decode_into(&mut tokens, client, appends));
    (tokens, ended)
}

async fn decode_into(
    tokens: &mut Vec<u32>,
    mut client: VerifierClient<Channel>,
    appends: &[Append],
) -> Result<(), Status> {
    let (requests, outgoing) = mpsc::channel::<SessionRequest>(4);
    let send = async |request: Request| {
        // Where the stream has ended, its replies tell.
        let _ = requests.send(request.into()).await;
    };
    send(Request::Open(open())).await;
    let round = Round::Decode(DecodeRound {
        max_tokens: MAX_TOKENS,
        until: FIRST,
        drafts: true,
        ..DecodeRound::default()
    });
    let header = RoundHeader {
        round: 1,
        epoch: 1,
        timeout_ms: 5_000,
        digest: digest(&round),
        ..Default::default()
    };
    send(Request::Round(RoundRequest {
        header: Some(header),
        round: Some(round),
    }))
    .await;
    let replies = client.verify(ReceiverStream::new(outgoing)).await?;
    let mut replies = replies.into_inner();
    let mut until = FIRST;
    read(&mut replies, tokens, until).await?;
    for append in appends {
        until += FURTHER;
        send(Request::Append(append.clone())).await;
        send(Request::Grant(Grant { until })).await;
        read(&mut replies, tokens, until).await?;
    }
    until = MAX_TOKENS;
    send(Request::Grant(Grant { until })).await;
    read(&mut replies, tokens, until).await?;
    send(Request::Close(Close {})).await;
    while replies.message().await?.is_some() {}
    Ok(())
}

/// Reads on until the tokens before `until` have come, or the last.
async fn read(
    replies: &mut Streaming<SessionReply>,
    tokens: &mut Vec<u32>,
    until: u32,
) -> Result<(), Status> {
    let is_over =
        |tokens: &[u32]| tokens.len() >= until.min(MAX_TOKENS) as usize || tokens.contains(&END);
    while !is_over(tokens) {
        let reply = replies.message().await?.and_then(|message| message.reply);
        match reply {
            Some(Reply::Answer(v1::RoundAnswer {
                part: Some(Part::Decoded(part)),
                ..
            })) => {
                assert_eq!(part.from as usize, tokens.len());
                tokens.extend(part.token_ids);
                assert!(tokens.len() <= until as usize, "beyond the grant");
            }
            Some(_) => {}
            None => return Err(Status::unavailable("ended")),
        }
    }
    Ok(())
}

fn open() -> Open {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Open {
        session_id: [number.to_le_bytes(), [5; 8]].concat(),
        epoch: 1,
        prompt_token_ids: vec![79, 110, 99, 101],
        sampling: Some(v1::SamplingParams::default()),
        seed: 5,
        vocab_size: VOCAB_SIZE,
        end_token_ids: vec![END],
        lease_ms: 1_000,
        ..Default::default()
    }
}

/// Checks what a tree holds of the proposals as the output grows.
fn keeps_a_tree(appends: &[Append], own: &[u32]) {
    let read = |append: &Append| pending::from_wire(append.clone()).ok();
    let proposals: Vec<ProposedTree> = appends.iter().filter_map(read).collect();
    let mut tree = PendingTree::default();
    for (at, &token) in own.iter().enumerate() {
        let bounds = Bounds {
            levels: own.len() as u32 - at as u32,
            vocab_size: VOCAB_SIZE,
            ends: &[END],
        };
        for proposed in &proposals {
            let before = tree.len();
            let received = tree.receive(proposed, &own[..at], bounds);
            assert_eq!(tree.len(), before + received.new as usize);
        }
        check(&tree, bounds);
        tree.advance(token);
    }
}

/// Checks that `tree` is one, in bounds, and that no node stands more surely than the one that it follows.
fn check(tree: &PendingTree, bounds: Bounds<'_>) {
    assert!(tree.len() <= ROOM && tree.levels() <= bounds.levels);
    for chain in [false, true] {
        let ranked = tree.ranked(u32::MAX, chain, &Trust::default());
        assert!(chain || ranked.len() == tree.len());
        assert!(ranked.is_sorted_by(|one, next| one.1 >= next.1));
        for count in [1, 2, ranked.len() / 2, ranked.len()] {
            let chosen = &ranked[..count.min(ranked.len())];
            let (block, claims) = tree.tree_of(chosen);
            // One that is no tree comes empty.
            assert_eq!(block.len(), chosen.len());
            assert!(!chain || block.is_chain());
            for (node, claim) in claims.iter().enumerate() {
                let parent = block.parent(node);
                let before = parent.map_or(1.0, |parent| claims[parent].survival);
                assert!(
                    claim.survival > 0.0 && claim.survival <= before,
                    "{claims:?}"
                );
                assert!(block.tokens()[node] < bounds.vocab_size);
                assert!(parent.is_none_or(|parent| !bounds.ends.contains(&block.tokens()[parent])));
            }
        }
    }
}
