//! The laboratory as its users run it.

mod bigram;
mod command_line;
// The commands of the product are run the same way.
#[path = "../../../../services/outrider/tests/cli/commands.rs"]
mod commands;
mod compare;
mod record_replay;
mod results;
mod speed;
mod train_head;

use std::process::Command;

use serde_json::Value;

use commands::{each_refused, json_lines, refused, run, says, signal, succeeds, words};

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider-bench"));
    command.args(args).env_remove("OUTRIDER__LOG__FILTER");
    command
}

/// The rows that a measurement prints, behind the object that says what was run and where.
fn rows(args: &[&str]) -> Vec<Value> {
    let mut lines = json_lines(args);
    let head = lines.remove(0);
    let command = head["report"]["command"].as_str().expect("a command");
    assert!(command.starts_with("outrider-bench "), "{head}");
    lines
}

/// Those of the table `name`.
fn of_table(rows: &[Value], name: &str) -> Vec<Value> {
    let of_it = rows.iter().filter(|row| row["table"] == name);
    of_it.cloned().collect()
}

fn number(row: &Value, key: &str) -> f64 {
    let number = row[key].as_f64();
    number.unwrap_or_else(|| panic!("{key} in {row}"))
}
