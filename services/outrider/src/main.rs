//! The binary users run: `outrider serve`, `generate`, `chat`, `models`, `bench`, `sweep`, `record`,
//! `replay`, `score`, `quantize`, `methods`, `config`, `health`, `completions`, `man`.

mod bench;
mod bigram;
mod chat;
mod cli;
mod cluster;
mod completions;
mod config;
mod connect;
mod drafting_args;
mod failure;
mod generate;
mod health;
mod interrupt;
mod man;
mod memory;
mod method_args;
mod methods;
mod model_args;
mod models;
mod print_config;
mod process;
mod progress;
mod quantize;
mod record;
mod replay;
mod request_args;
mod score;
mod serve;
mod sweep;
mod train_head;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    memory::keep_pages();
    server::tls::install_provider();
    cli::main().await
}
