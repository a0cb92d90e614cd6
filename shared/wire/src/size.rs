//! How many bytes messages take.

use prost::Message;

/// A message of the protocol.
pub trait Encoded {
    /// Bytes it takes on the wire, without gRPC's frame of five bytes and without compression.
    fn encoded_bytes(&self) -> u64;
}

impl<M: Message> Encoded for M {
    fn encoded_bytes(&self) -> u64 {
        self.encoded_len() as u64
    }
}
