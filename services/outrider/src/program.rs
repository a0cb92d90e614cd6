//! What a program does around its commands.

use std::process::ExitCode;

use clap::Parser;

use crate::{failure, memory};

/// Reads the command line, has it carried out, and tells what went wrong. Whoever calls this has mimalloc for
/// its allocator.
pub async fn run<C: Parser>(
    carry_out: impl AsyncFnOnce(C) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    memory::keep_pages();
    let as_json = failure::wants_json(std::env::args_os());
    let cli = C::try_parse().unwrap_or_else(|error| failure::refuse(&error, as_json));
    match Box::pin(carry_out(cli)).await {
        Ok(code) => code,
        // Whoever reads the output has had enough of it.
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::report(&error, as_json);
            ExitCode::FAILURE
        }
    }
}
