//! What the fuzz targets share: tiny models, the services on them, and the messages that an input is read as.

pub mod fake;
pub mod input;
pub mod models;
pub mod services;
