//! Enumeration of random programs, and random distributions to run them on.

mod branch;
pub(crate) mod chain;
mod distributions;
mod outputs;
mod rounds;

pub(crate) use branch::{Branch, enumerate};
pub(crate) use distributions::{Distributions, Pair, pairs};
pub(crate) use outputs::{OutputDistribution, assert_same, emitted, outputs, play};
pub(crate) use rounds::Setup;
