//! The digest that tells a repeated round from another one with the same number.

use prost::bytes::Buf;
use sha2::{Digest, Sha256};

use crate::v1::round_request::Round;

/// Returns the first 8 bytes of the SHA-256 of what `round` asks, as it is encoded in a
/// [`RoundRequest`](crate::v1::RoundRequest) without a header: of draft, proposals and parameters.
pub fn digest(round: &Round) -> u64 {
    let mut encoded = Vec::with_capacity(round.encoded_len());
    round.encode(&mut encoded);
    short(&encoded)
}

/// First 8 bytes of the SHA-256 of `bytes`, as a little-endian number.
pub fn short(bytes: &[u8]) -> u64 {
    Sha256::digest(bytes).as_slice().get_u64_le()
}

/// Returns the name of the request whose sessions at the peers are called `session_id`: 32 hexadecimal digits. Whoever
/// knows the session's name can tell its request's, and nobody the other way round: with the name of a session
/// one could take it over.
pub fn request_id(session_id: [u8; 16]) -> String {
    let hash = Sha256::digest(session_id);
    format!("{:032x}", hash.as_slice().get_u128())
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::v1;

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
        assert_eq!(digest(&round(4)), short(&request.encode_to_vec()));
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
