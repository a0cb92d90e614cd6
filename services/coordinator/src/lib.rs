//! The coordinator service: runs the speculative loop and talks to clients.
//!
//! One request, one file per hop: `grpc.rs` takes it, `request.rs` checks it, `driver.rs` carries out
//! what the sans-io session asks for, `link.rs` and `exchange.rs` speak to one peer, `output.rs`
//! turns tokens into text for the client, `observe.rs` hears what happens. It holds no model; the tokenizer comes from the verifier.

mod admission;
mod attachment;
mod config;
mod deadline;
mod decide;
mod demand;
mod driver;
mod error;
mod exchange;
mod figures;
mod grpc;
mod limits;
mod link;
mod listing;
mod method;
mod observe;
mod output;
mod peer_links;
mod peers;
mod report;
mod request;
mod service;
mod text;

pub use config::{CoordinatorConfig, ModelGroup};
pub use error::CoordinatorError;
pub use limits::limits;
pub use service::{Coordinator, run};
