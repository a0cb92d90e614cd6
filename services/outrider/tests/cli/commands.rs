//! Commands run as their users run them, of the program that the tests are for.

use std::process::{Command, Output};

use serde_json::Value;

use super::program;

pub(crate) fn run(args: &[&str]) -> Output {
    program(args).output().expect("the binary runs")
}

/// What a command that must fail says.
pub(crate) fn refused(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && output.status.code() != Some(101),
        "{args:?}: {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

/// What a command that must succeed prints on stdout and stderr.
pub(crate) fn succeeds(command: &mut Command) -> (String, String) {
    let output = command.output().expect("the binary runs");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|said| String::from_utf8(said).expect("text"));
    assert!(output.status.success(), "{command:?}: {stderr}");
    (stdout, stderr)
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

/// Each line is of arguments that must be refused, and of what must be said: `arguments | part | part`.
pub(crate) fn each_refused(command: &[&str], table: &[&str]) {
    for line in table {
        let (arguments, parts) = line.split_once(" | ").expect("what must be said");
        let said = refused(&[command, &words(arguments)[..]].concat());
        for part in parts.split(" | ") {
            assert!(said.contains(part), "{line}: {said}");
        }
    }
}
