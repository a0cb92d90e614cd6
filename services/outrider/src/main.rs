//! The binary users run: `outrider serve`, `generate`, `chat`, `models`, `bench`, `sweep`, `record`,
//! `replay`, `score`, `quantize`, `methods`, `config`.

mod bench;
mod bigram;
mod chat;
mod cli;
mod cluster;
mod config;
mod drafting_args;
mod generate;
mod memory;
mod method_args;
mod methods;
mod models;
mod print_config;
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

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    memory::keep_pages();
    let cli = cli::Cli::parse();
    match Box::pin(cli::run(cli)).await {
        Ok(code) => code,
        // Whoever reads the output has had enough of it.
        Err(error) if cli::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Causes that the message already ends with are not said twice.
            anstream::eprintln!("error: {}", cli::one_line(&error));
            ExitCode::FAILURE
        }
    }
}
