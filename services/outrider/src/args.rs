//! Flags that several commands share.

mod drafting;
mod method;
mod model;
mod request;
mod services;

pub use drafting::DraftingArgs;
pub use method::MethodArgs;
pub use model::ModelArgs;
pub(crate) use request::RequestArgs;
pub use services::ServicesArgs;
