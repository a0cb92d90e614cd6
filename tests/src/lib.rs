//! What tests of several crates share.

pub mod contract;
pub mod toy;
