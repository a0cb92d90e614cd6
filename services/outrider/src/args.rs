//! Flags that several commands share.

mod connection;
mod method;
mod model;
mod request;
mod sampling;
mod services;
mod suggested;

pub use connection::ConnectionArgs;
pub(crate) use connection::TlsArgs;
pub use method::{DraftingArgs, MethodArgs, as_flag};
pub use model::ModelArgs;
pub(crate) use request::RequestArgs;
pub use services::ServicesArgs;
use suggested::Suggested;
