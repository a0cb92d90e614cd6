//! The gRPC protocol: generated messages and services, and their conversions to domain types.
//!
//! Whatever comes from a peer or a client is checked here, once, so that the rest of the program
//! only sees values in range. The `.proto` files under `proto/outrider/v1` say what each field
//! means.

// A new value of an axis is to be missed wherever axes are told apart.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod bounds;
pub mod describe;
pub mod draft_block;
pub mod drafting;
pub mod failure;
pub mod grammar;
pub mod json;
pub mod logprobs;
pub mod open;
pub mod pending;
pub mod proposal;
pub mod report;
pub mod round;
pub mod sampling;
pub mod settings;
pub mod slice;
pub mod status;
pub mod target;
pub mod verdict;

pub use bounds::encoded_bytes;

/// Version of the protocol; peers of another one are refused.
pub const PROTOCOL_VERSION: u32 = 1;

/// The descriptors of all services, for reflection, and the paths of the methods whose requests are streams.
pub const DESCRIPTORS: (&[u8], &[&str]) = (
    include_bytes!(concat!(env!("OUT_DIR"), "/outrider.v1.bin")),
    include!(concat!(env!("OUT_DIR"), "/client_streaming.rs")),
);

/// Generated from `proto/outrider/v1`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("outrider.v1");
}
