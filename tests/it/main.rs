//! The three services in one process, on real models, over real sockets.

mod client;
mod cluster;
mod docs;
mod drafter;
mod drafting;
mod drain;
mod encoder_decoder;
mod engines;
mod errors;
mod faults;
mod http;
mod layering;
mod leaks;
mod lifecycle;
#[cfg(feature = "llama-cpp")]
mod llama_cpp;
mod lossless;
mod memory;
mod methods;
mod metrics;
mod modules;
mod monitoring;
mod operations;
mod paced;
mod peers;
mod prompts;
mod protocol;
mod relay;
mod remote;
mod same;
mod security;
mod slow_readers;
mod streams;
mod tampering;
mod telemetry;
mod unlike;
