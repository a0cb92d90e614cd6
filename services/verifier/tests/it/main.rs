//! A verifier over its own protocol, with a model whose pace and faults the tests set.

mod faults;
mod progress;
mod world;
