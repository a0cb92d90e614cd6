//! Shared by the fuzz targets: tiny models and services that run them, stubs of peers and engines whose responses come
//! from the input, and the decoding of inputs.

pub mod fake;
pub mod fake_engine;
pub mod input;
pub mod memory;
pub mod models;
pub mod services;
