//! Flags that several commands share.

mod method;
mod request;
mod sampling;
mod services;
mod suggested;

pub(crate) use method::with_flag;
pub use method::{MethodArgs, as_flag};
pub(crate) use request::RequestArgs;
pub(crate) use services::TlsArgs;
pub use services::{ConnectionArgs, ModelArgs, ServicesArgs};
use suggested::Suggested;
