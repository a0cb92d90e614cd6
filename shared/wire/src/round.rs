//! Round headers: where a round stands, what tells it from others, and what a reply answers.

use std::time::Duration;

use prost::bytes::Buf;
use sha2::{Digest, Sha256};
use speculation::TokenId;

use crate::status::BadField;
use crate::v1;
use crate::v1::round_request::Round;

/// Longest time a caller may wait for a reply.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// A checked [`v1::RoundHeader`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundSpec {
    /// What tells this request from others of the session.
    pub key: RoundKey,
    /// Epoch of the stream.
    pub epoch: u32,
    /// How long the caller waits.
    pub timeout: Duration,
    /// First position of `committed`.
    pub from_len: usize,
    /// Output tokens from there on.
    pub committed: Vec<TokenId>,
    /// What the caller's trace is called, as it came; empty where the round has no spans.
    pub trace_context: Vec<u8>,
}

/// What a cached reply is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoundKey {
    /// Number of the round.
    pub round: u64,
    /// Output tokens it builds on.
    pub base_len: u32,
    /// Digest of what is asked.
    pub digest: u64,
}

impl RoundSpec {
    /// Returns the header of a reply.
    pub fn reply_header(&self, replayed: bool) -> v1::ReplyHeader {
        v1::ReplyHeader {
            round: self.key.round,
            epoch: self.epoch,
            base_len: self.key.base_len,
            digest: self.key.digest,
            replayed,
        }
    }

    /// Returns the message that `done` tokens of `total` have been forwarded for the round; see [`v1::Progress`].
    pub fn progress(&self, done: usize, total: usize) -> v1::Progress {
        let count = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
        v1::Progress {
            header: Some(self.reply_header(false)),
            done: count(done),
            total: count(total),
        }
    }
}

/// Checks the header of a round on a stream of this `epoch`, whose session has `vocab_size` token ids.
///
/// # Errors
/// Names the field that is missing or out of range.
pub fn from_wire(
    header: Option<v1::RoundHeader>,
    epoch: u32,
    vocab_size: u32,
) -> Result<RoundSpec, BadField> {
    let header = header.ok_or_else(|| BadField::new("header", "missing"))?;
    let timeout = Duration::from_millis(header.timeout_ms.into());
    let most = MAX_TIMEOUT.as_millis() as u32;
    BadField::in_range("timeout_ms", header.timeout_ms, 1..=most)?;
    if header.epoch != epoch {
        let problem = format!("{} is not the stream's, {epoch}", header.epoch);
        return Err(BadField::new("epoch", problem));
    }
    BadField::in_vocabulary("committed", &header.committed, vocab_size)?;
    let base_len = u32::try_from(header.committed.len())
        .ok()
        .and_then(|len| header.from_len.checked_add(len))
        .ok_or_else(|| BadField::new("from_len", "base_len exceeds 32 bits"))?;
    Ok(RoundSpec {
        key: RoundKey {
            round: header.round,
            base_len,
            digest: header.digest,
        },
        epoch,
        timeout,
        from_len: header.from_len as usize,
        committed: header.committed,
        trace_context: header.trace_context,
    })
}

/// Returns the first 8 bytes of the SHA-256 of what `round` asks, as it is encoded in a
/// [`RoundRequest`](v1::RoundRequest) without a header: of draft, proposals and parameters. It tells a repeated round from
/// another one with the same number.
pub fn digest(round: &Round) -> u64 {
    let mut encoded = Vec::with_capacity(round.encoded_len());
    round.encode(&mut encoded);
    Sha256::digest(encoded).as_slice().get_u64_le()
}

/// Returns the name of the request whose sessions at the peers are called `session_id`: 32 hexadecimal digits. Whoever
/// knows the session's name can tell its request's, and nobody the other way round: with the name of a session
/// one could take it over.
pub fn request_id(session_id: [u8; 16]) -> String {
    let hash = Sha256::digest(session_id);
    format!("{:032x}", hash.as_slice().get_u128())
}

impl From<v1::session_request::Request> for v1::SessionRequest {
    fn from(request: v1::session_request::Request) -> Self {
        let request = Some(request);
        Self { request }
    }
}

impl From<v1::session_reply::Reply> for v1::SessionReply {
    fn from(reply: v1::session_reply::Reply) -> Self {
        let reply = Some(reply);
        Self { reply }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn header() -> v1::RoundHeader {
        v1::RoundHeader {
            round: 2,
            epoch: 1,
            timeout_ms: 100,
            from_len: 3,
            committed: vec![4, 5],
            digest: 9,
            trace_context: vec![],
        }
    }

    #[test]
    fn base_len_counts_what_is_committed() {
        let round = from_wire(Some(header()), 1, 10).expect("a round");
        assert_eq!(
            (round.key.round, round.key.base_len, round.key.digest),
            (2, 5, 9)
        );
    }

    #[test]
    fn each_fault_is_named() {
        type Fault = fn(&mut v1::RoundHeader);
        let faults: [(&str, Fault); 5] = [
            ("timeout_ms", |header| header.timeout_ms = 0),
            ("timeout_ms", |header| header.timeout_ms = 600_001),
            ("epoch", |header| header.epoch = 2),
            ("committed", |header| header.committed = vec![10]),
            ("from_len", |header| header.from_len = u32::MAX),
        ];
        for (field, fault) in faults {
            let mut header = header();
            fault(&mut header);
            let error = from_wire(Some(header), 1, 10).expect_err(field);
            assert_eq!(error.field, field);
        }
        let error = from_wire(None, 1, 10).expect_err("no header");
        assert_eq!(error.field, "header");
    }

    #[test]
    fn the_digest_is_of_the_encoded_request_without_its_header() {
        let round = |max_tokens| {
            Round::Draft(v1::DraftRound {
                max_tokens,
                ..Default::default()
            })
        };
        let request = v1::RoundRequest {
            header: None,
            round: Some(round(4)),
        };
        assert_eq!(
            digest(&round(4)),
            crate::describe::fingerprint(&request.encode_to_vec())
        );
        assert_ne!(digest(&round(4)), digest(&round(5)));
    }

    #[test]
    fn a_request_is_called_by_a_hash_of_its_session() {
        let id = request_id([7; 16]);
        assert_eq!(id.len(), 32);
        assert_eq!(id, request_id([7; 16]));
        assert_ne!(id, format!("{:032x}", u128::from_be_bytes([7; 16])));
        assert_ne!(id, request_id([8; 16]));
    }
}
