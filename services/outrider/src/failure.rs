//! How a command tells that it failed: in words on stderr, and as JSON on stdout where JSON was asked for.

use std::ffi::OsString;
use std::io::Write;

use net::fault::in_one_line;
use ops::telemetry;
use serde_json::json;
use thiserror::Error;

/// A failure that the JSON on stdout tells already.
#[derive(Debug, Error)]
#[error("{}", one_line(.0))]
pub(crate) struct AlreadyReported(pub(crate) anyhow::Error);

/// A failure of a process whose log lines are JSON.
#[derive(Debug, Error)]
#[error("{}", one_line(.0))]
pub(crate) struct InLogLine(pub(crate) anyhow::Error);

/// Returns whether the command line asks for JSON. Looked for word by word, because a command line that cannot be
/// understood may ask for it too.
pub(crate) fn wants_json(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.any(|argument| argument == "--json")
}

/// Tells why a command failed.
pub(crate) fn report(error: &anyhow::Error, as_json: bool) {
    let message = one_line(error);
    if as_json && !error.is::<AlreadyReported>() {
        print(&message);
    }
    if error.is::<InLogLine>() {
        anstream::eprintln!("{}", telemetry::error_line(&message));
    } else {
        anstream::eprintln!("error: {message}");
    }
}

/// Tells what is wrong with a command line, or shows the help it asks for, and ends the program.
pub(crate) fn refuse(error: &clap::Error, as_json: bool) -> ! {
    if as_json && error.use_stderr() {
        print(&of_command_line(error));
    }
    error.exit()
}

/// Says in one line what is wrong with a command line.
pub(crate) fn of_command_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    // The first paragraph says what is wrong, the others how it is done.
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

/// Returns the object of a failure, in a line.
pub(crate) fn object(message: &str) -> String {
    json!({ "error": { "message": message } }).to_string()
}

fn print(message: &str) {
    // Who does not read stdout any more reads the words on stderr.
    let _ = writeln!(std::io::stdout(), "{}", object(message));
}

/// Returns whether the reader of the output went away.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Returns an error and its causes in one line, without those that the message quotes already.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    in_one_line(error.as_ref())
}
