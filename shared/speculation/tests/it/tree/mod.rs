//! Enumeration of random programs, and random laws to run them on.

mod branch;
pub(crate) mod chain;
mod laws;
mod rounds;

pub(crate) use branch::{Branch, enumerate};
pub(crate) use laws::{Laws, Pair, pairs};
pub(crate) use rounds::{OutputLaw, Setup};
