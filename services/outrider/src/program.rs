//! What a program does around its commands.

use std::any::TypeId;
use std::process::ExitCode;

use clap::{Command, Parser};

use crate::{failure, memory, wrong_value};

/// Reads the command line, on which a negative number is a value: that it is out of range is said as of other values.
fn parse<C: Parser>() -> Result<C, clap::Error> {
    let mut command = with_negative_numbers(C::command());
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    C::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn with_negative_numbers(command: Command) -> Command {
    let numbers = [
        TypeId::of::<f32>(),
        TypeId::of::<f64>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
    ];
    let with = command.mut_args(|arg| {
        let kind = arg.get_value_parser().type_id();
        let is_number = numbers.iter().any(|number| kind == *number);
        if is_number {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    });
    with.mut_subcommands(with_negative_numbers)
}

/// Reads the command line, has it carried out, and tells what went wrong. Whoever calls this has mimalloc for
/// its allocator.
pub async fn run<C: Parser>(
    carry_out: impl AsyncFnOnce(C) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    memory::keep_pages();
    let as_json = failure::wants_json(std::env::args_os());
    let cli = parse();
    let cli = cli.unwrap_or_else(|error| failure::refuse(&wrong_value::in_words(error), as_json));
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
