//! Digests: the one that tells a repeated request from another one with the same round number, and the name of a request.

use prost::Message;
use sha2::{Digest, Sha256};

use crate::v1;

/// A request that carries a [`v1::RoundHeader`].
pub trait Digestible: Message + Clone {
    /// The request's header.
    fn header(&self) -> Option<&v1::RoundHeader>;

    /// The request's header, to be changed.
    fn header_mut(&mut self) -> &mut Option<v1::RoundHeader>;
}

impl Digestible for v1::DraftRound {
    fn header(&self) -> Option<&v1::RoundHeader> {
        self.header.as_ref()
    }

    fn header_mut(&mut self) -> &mut Option<v1::RoundHeader> {
        &mut self.header
    }
}

impl Digestible for v1::VerifyRound {
    fn header(&self) -> Option<&v1::RoundHeader> {
        self.header.as_ref()
    }

    fn header_mut(&mut self) -> &mut Option<v1::RoundHeader> {
        &mut self.header
    }
}

impl Digestible for v1::DecodeRound {
    fn header(&self) -> Option<&v1::RoundHeader> {
        self.header.as_ref()
    }

    fn header_mut(&mut self) -> &mut Option<v1::RoundHeader> {
        &mut self.header
    }
}

impl Digestible for v1::ScoreRound {
    fn header(&self) -> Option<&v1::RoundHeader> {
        self.header.as_ref()
    }

    fn header_mut(&mut self) -> &mut Option<v1::RoundHeader> {
        &mut self.header
    }
}

/// First 8 bytes of the SHA-256 of what `request` asks: draft, proposals and parameters, and not
/// the parts of its header that differ between copies of one request.
pub fn digest(request: &impl Digestible) -> u64 {
    let encoded = if request.header().is_none() {
        request.encode_to_vec()
    } else {
        let mut request = request.clone();
        *request.header_mut() = None;
        request.encode_to_vec()
    };
    short(&encoded)
}

/// First 8 bytes of the SHA-256 of `bytes`, as a little-endian number.
pub fn short(bytes: &[u8]) -> u64 {
    let hash = Sha256::digest(bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first)
}

/// Returns the name of the request whose sessions at the peers are called `session_id`: 32 hexadecimal digits. Whoever
/// knows the session's name can tell its request's, and nobody the other way round: with the name of a session
/// one could take it over.
pub fn request_id(session_id: [u8; 16]) -> String {
    let hash = Sha256::digest(session_id);
    let mut first = [0; 16];
    first.copy_from_slice(&hash[..16]);
    format!("{:032x}", u128::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_of_what_is_asked_and_not_of_the_header() {
        let requested = v1::DraftRound {
            max_tokens: 4,
            ..Default::default()
        };
        let header = v1::RoundHeader {
            round: 3,
            timeout_ms: 9,
            ..Default::default()
        };
        let again = v1::DraftRound {
            header: Some(header),
            ..requested.clone()
        };
        assert_eq!(digest(&requested), digest(&again));
        let other = v1::DraftRound {
            max_tokens: 5,
            ..requested.clone()
        };
        assert_ne!(digest(&requested), digest(&other));
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
