//! The coordinator service: runs the speculative loop and talks to clients.
//!
//! A request goes one way: `front` takes it, `request` checks it into plain data (`admitted`), `driver` carries
//! out what the sans-io session asks for, `peer` speaks to drafters and verifiers, which its `pool` finds. What
//! happens becomes `events`, which `observe` consumes; what a client may use in a minute is its
//! `quota`. Imports go down this list only. The coordinator holds no model; the tokenizer comes from the verifier.

mod admitted;
mod config;
mod driver;
mod events;
mod front;
pub mod limits;
mod observe;
mod peer;
mod quota;
mod request;
mod service;

pub use config::{CoordinatorConfig, DefaultDraftLen, DefaultDrafting, HttpConfig, ModelGroup};
pub use service::{Coordinator, bind_http, run};
