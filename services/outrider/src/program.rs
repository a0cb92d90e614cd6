//! What a program does around its commands.

use std::any::TypeId;
use std::panic;
use std::process::ExitCode;

use clap::{Command, Parser};
use libmimalloc_sys::{mi_option_set, mi_option_t};

use crate::{failure, wrong_value};

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
    keep_pages();
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

/// `mi_option_purge_delay` of mimalloc.h, which the bindings leave out: after how many milliseconds
/// freed pages go back to the system; -1 is never.
const PURGE_DELAY: mi_option_t = 15;

/// Keeps freed pages instead of returning them to the system. A forward frees and takes the same
/// buffers over and over; giving pages back in between makes each of them fault in again.
pub(crate) fn keep_pages() {
    // SAFETY: sets one option of the allocator; callable at any time, from any thread.
    unsafe { mi_option_set(PURGE_DELAY, -1) }
}

/// What the standard library and tokio say then, before the system's own words.
const NO_THREAD: [&str; 2] = ["failed to spawn thread", "can't spawn worker thread"];
const NO_RESOURCE: &str = "Resource temporarily unavailable";

/// Has a panic for want of threads said in one line, with what to do about it, and not with a backtrace. All others are
/// faults of the program, and told as ever.
pub fn explain_want_of_threads() {
    let as_ever = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let said = info.payload_as_str();
        if said.is_some_and(is_want_of_threads) {
            eprintln!(
                "error: the system starts no more threads for this program: raise the limit of its processes \
                 (`ulimit -u`, `pids` of a container's limits), or lower the services' threads"
            );
            return;
        }
        as_ever(info);
    }));
}

fn is_want_of_threads(said: &str) -> bool {
    said.contains(NO_RESOURCE) && NO_THREAD.iter().any(|part| said.contains(part))
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    /// mimalloc's default delay is 10 ms (1 s in its third version), and no other option has
    /// either default: the number still names the option it is meant to name.
    #[test]
    fn the_option_is_the_purge_delay() {
        // SAFETY: reads one option of the allocator.
        let before = unsafe { mi_option_get(PURGE_DELAY) };
        assert!(before == 10 || before == 1_000, "{before}");
        keep_pages();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, -1);
    }

    #[test]
    fn want_of_threads_is_told_from_faults() {
        let tokio = "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)";
        let std = "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }";
        assert!(is_want_of_threads(tokio) && is_want_of_threads(std));
        for other in [
            "index out of bounds",
            "Resource temporarily unavailable",
            "failed to spawn thread: other",
        ] {
            assert!(!is_want_of_threads(other), "{other}");
        }
    }
}
