//! The program users run; see the library beside it.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before there is a runtime, whose threads may be the first that the system does not give.
    outrider::program::explain_want_of_threads();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    outrider::main().await
}
