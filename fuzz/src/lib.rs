//! What the fuzz targets share: tiny models, the services on them, peers and engines that say anything,
//! and what an input is read as.

pub mod fake;
pub mod fake_engine;
pub mod input;
pub mod memory;
pub mod models;
pub mod services;
