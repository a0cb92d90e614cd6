//! Flags that several commands share.

mod connection;
mod drafting;
mod method;
mod model;
mod request;
mod sampling;
mod services;
mod suggested;

pub use connection::ConnectionArgs;
pub(crate) use connection::TlsArgs;
pub use drafting::DraftingArgs;
pub use method::MethodArgs;
pub use model::ModelArgs;
pub(crate) use request::RequestArgs;
pub use services::ServicesArgs;
use suggested::Suggested;
