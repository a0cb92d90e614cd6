//! The clients of engines, against servers that answer as the engines do, and as they must not.

mod certified;
mod http;
mod model;
mod probe;
mod recorded;
mod sglang;
mod stub;
mod vllm;
