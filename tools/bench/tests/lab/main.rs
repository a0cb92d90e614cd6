//! The laboratory as its users run it.

mod bigram;
mod command_line;
mod compare;
mod record_replay;
mod speed;
mod train_head;

use std::process::{Command, Output};

fn outrider_bench(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider-bench"));
    command.args(args).env_remove("OUTRIDER__LOG__FILTER");
    command
}

fn run(args: &[&str]) -> Output {
    outrider_bench(args).output().expect("the binary runs")
}

/// What a command that must fail says.
fn refused(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && output.status.code() != Some(101),
        "{args:?}: {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}
