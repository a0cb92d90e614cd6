//! The laboratory: measures methods, kernels and models, and makes what drafting learns from data.

mod batch;
mod bigram;
mod capacity;
mod cli;
mod compare;
mod contexts;
mod decode;
#[cfg(feature = "device")]
mod device;
mod distance;
mod drafting;
mod http;
mod kernels;
mod load;
mod loading;
mod measure;
mod models;
mod pairs;
mod papers;
mod parts;
#[cfg(feature = "llama-cpp")]
mod port;
mod quality;
mod ranges;
mod read_probe;
mod record;
mod recording;
mod replay;
mod report;
mod request;
mod results;
mod serve;
mod spec;
mod speedup;
mod structured;
mod sweep;
mod telemetry;
mod timing;
mod train_head;
mod turns;
mod verification;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    outrider::program::run(cli::run).await
}
