//! A drafter over its own protocol, with models slow enough to be watched.

mod progress;
mod world;
