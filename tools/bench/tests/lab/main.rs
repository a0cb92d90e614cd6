//! The laboratory as its users run it.

mod bigram;
mod command_line;
// The commands of the product are run the same way.
#[path = "../../../../services/outrider/tests/cli/commands.rs"]
mod commands;
mod compare;
mod record_replay;
mod speed;
mod train_head;

use std::process::Command;

use commands::{each_refused, json_lines, refused, run, succeeds, words};

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider-bench"));
    command.args(args).env_remove("OUTRIDER__LOG__FILTER");
    command
}
