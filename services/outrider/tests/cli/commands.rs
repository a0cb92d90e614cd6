//! Commands run as their users run them, of the program that the tests are for.

use std::process::{Child, Command, Output};

use serde_json::Value;

use super::program;

pub(crate) fn run(args: &[&str]) -> Output {
    program(args).output().expect("the binary runs")
}

/// Returns what a command that must fail says.
pub(crate) fn refused(args: &[&str]) -> String {
    fails(&mut program(args))
}

/// The same of a command with more than arguments.
pub(crate) fn fails(command: &mut Command) -> String {
    let output = command.output().expect("the binary runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && output.status.code() != Some(101),
        "{command:?}: {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

/// Returns what a command that must succeed prints on stdout and stderr.
pub(crate) fn succeeds(command: &mut Command) -> (String, String) {
    let output = command.output().expect("the binary runs");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|said| String::from_utf8(said).expect("text"));
    assert!(output.status.success(), "{command:?}: {stderr}");
    (stdout, stderr)
}

/// Sends a signal to a process, by its name.
pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.expect("kill runs").success());
}

/// The JSON lines that a command prints.
pub(crate) fn json_lines(args: &[&str]) -> Vec<Value> {
    let (stdout, _) = succeeds(&mut program(args));
    let lines = stdout.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON lines")
}

/// The words of a command line; what stands between apostrophes is one.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let pieces = line.split('\'').enumerate();
    let words = pieces.flat_map(|(index, piece)| match index % 2 {
        0 => piece.split_whitespace().collect::<Vec<_>>(),
        _ => vec![piece],
    });
    words.collect()
}

/// Each of the parts must be said: `part | part`.
#[track_caller]
pub(crate) fn says(said: &str, parts: &str) {
    for part in parts.split(" | ") {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Each line is of arguments that must be refused, and of what must be said: `arguments | part | part`.
pub(crate) fn each_refused(command: &[&str], table: &[&str]) {
    for line in table {
        let (arguments, parts) = line.split_once(" | ").expect("what must be said");
        let said = refused(&[command, &words(arguments)[..]].concat());
        says(&said, parts);
    }
}
