//! The coordinator service: runs the speculative loop and talks to clients.
//!
//! A request goes one way: `front` takes it, `request` checks it into plain data (`admitted`), `driver` carries
//! out what the sans-io session asks for, `peer` speaks to drafters and verifiers, which the crate `fleet` finds. What
//! happens becomes `events`, which `observe` consumes. Imports go down this list only. The coordinator holds no model; the
//! tokenizer comes from the verifier.

mod admitted;
mod config;
mod driver;
mod events;
mod front;
pub mod limits;
mod observe;
mod peer;
mod proposers;
mod request;
mod service;

pub use config::{CoordinatorConfig, DefaultDraftLen, DefaultDrafting, HttpConfig};
pub use fleet::ModelGroup;
pub use service::{Coordinator, bind_http, run};
