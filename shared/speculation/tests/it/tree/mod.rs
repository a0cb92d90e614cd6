//! Enumeration of random programs, and random laws to run them on.

mod branch;
pub(crate) mod chain;
mod laws;
mod outputs;
mod rounds;

pub(crate) use branch::{Branch, enumerate};
pub(crate) use laws::{Laws, Pair, pairs};
pub(crate) use outputs::{OutputLaw, assert_same, emitted, outputs, play};
pub(crate) use rounds::Setup;
