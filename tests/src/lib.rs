//! What tests of several crates share, and `outrider-bench` with them.

pub mod acceptance;
pub mod candle;
pub mod contract;
pub mod session;
pub mod toy;
