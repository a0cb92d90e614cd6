//! Draft tokens proposed while a verifier decodes: they decide how many forwards that takes, and nothing else.

mod fitting;
mod refused;

use std::time::Duration;

use speculation::pending::PathDigest;
use v1::round_answer::Part;
use v1::session_request::Request;
use wire::v1::{self, Append, DecodeRound, Decoded, ForwardDrafts, Grant, Open};

use super::{SessionStream, with_header};
use crate::cluster::Service;

/// Output tokens that are decoded.
const MAX_TOKENS: u32 = 40;

/// How far a decode is granted at first: far enough that its engine knows what a forward takes, before which it scores no
/// draft.
const FIRST: u32 = 4;

/// Long enough that a part would have come.
const QUIET: Duration = Duration::from_millis(300);

fn decode(max_tokens: u32, until: u32) -> Request {
    let round = DecodeRound {
        max_tokens,
        until,
        drafts: true,
        ..Default::default()
    };
    Request::Round(with_header(round, 1, &[]))
}

/// A proposal of the tokens after `path`, which follows `after` output tokens; they are a chain if there are no `parents`.
fn tree(after: u32, path: &[u32], tokens: &[u32], parents: &[i32]) -> Append {
    Append {
        after,
        roots: vec![PathDigest::of(path).0],
        token_ids: tokens.to_vec(),
        parents: parents.to_vec(),
        // All of them are certain, or so it is said.
        survivals: vec![0; tokens.len()],
        sources: vec![0; tokens.len()],
    }
}

fn chain(after: u32, tokens: &[u32]) -> Append {
    tree(after, &[], tokens, &[])
}

/// A decode under way that is proposed drafts.
struct Decoding {
    stream: SessionStream,
    tokens: Vec<u32>,
    /// What came of each forward.
    forwards: Vec<Decoded>,
}

impl Decoding {
    /// Decodes the first tokens, as far as they are granted, and waits there. `change` makes the session's opening.
    async fn start(verifier: &Service, max_tokens: u32, change: impl FnOnce(&mut Open)) -> Self {
        let mut decoding = Self {
            stream: SessionStream::at_verifier(verifier.url(), change).await,
            tokens: Vec::new(),
            forwards: Vec::new(),
        };
        decoding.stream.send(decode(max_tokens, FIRST)).await;
        decoding.rest().await;
        decoding
    }

    /// Proposes these while the decode waits, and grants it the tokens before `until`. The verifier reads them in this order,
    /// so that the next forward has them all.
    async fn propose(&mut self, proposals: &[Append], until: u32) {
        for proposed in proposals {
            self.stream.send(Request::Append(proposed.clone())).await;
        }
        self.stream.send(Request::Grant(Grant { until })).await;
    }

    /// Reads on until nothing more comes, or the last part has come.
    async fn rest(&mut self) {
        while let Ok(next) = tokio::time::timeout(QUIET, self.stream.part()).await {
            let Part::Decoded(part) = next.expect("a part") else {
                panic!("another part");
            };
            assert_eq!(part.from as usize, self.tokens.len());
            self.tokens.extend(&part.token_ids);
            self.forwards.push(part);
            if self.forwards.last().is_some_and(|part| part.last) {
                break;
            }
        }
    }

    /// The forwards since the first that had drafts to choose from.
    fn streamed(&self) -> &[Decoded] {
        let first = |part: &Decoded| part.from >= FIRST;
        let at = self.forwards.iter().position(first);
        &self.forwards[at.expect("more than the first tokens")..]
    }

    /// What became of the drafts in the first of those.
    fn first_drafts(&self) -> ForwardDrafts {
        self.streamed()[0].drafts.expect("counts")
    }
}

/// What the target decodes by itself in a session that `change` opens, in as many forwards.
async fn own(verifier: &Service, max_tokens: u32, change: impl FnOnce(&mut Open)) -> Decoding {
    let mut alone = Decoding::start(verifier, max_tokens, |open| {
        open.session_id = vec![200; 16];
        change(open);
    })
    .await;
    alone.propose(&[], MAX_TOKENS).await;
    alone.rest().await;
    alone
}

/// A session of its own number, so that one does not find what another left.
fn numbered(number: u8) -> impl FnOnce(&mut Open) {
    move |open| open.session_id = vec![number; 16]
}
