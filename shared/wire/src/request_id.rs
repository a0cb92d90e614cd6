//! What a request is called where its client and operators see it.

use sha2::{Digest, Sha256};

/// The name of the request whose sessions at the peers are called `session_id`: 32 hexadecimal digits. Whoever
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
    fn a_request_is_called_by_a_hash_of_its_session() {
        let id = request_id([7; 16]);
        assert_eq!(id.len(), 32);
        assert_eq!(id, request_id([7; 16]));
        assert_ne!(id, format!("{:032x}", u128::from_be_bytes([7; 16])));
        assert_ne!(id, request_id([8; 16]));
    }
}
