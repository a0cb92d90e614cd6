//! The client beside a coordinator that answers as it is told.

mod calls;
mod fake;
mod losses;
// The relay of the system tests, with more than is wanted here.
#[allow(dead_code)]
#[path = "../../../../tests/it/relay.rs"]
mod relay;
mod replies;
