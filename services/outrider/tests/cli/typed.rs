//! Input from a terminal, a pipe or a file that has no end, or is longer than a request may be.

use std::process::{Command, Stdio};

use super::{outrider, refused, says};

#[test]
fn a_prompt_without_an_end_is_refused_by_its_limit() {
    let mut endless = Command::new("yes")
        .stdout(Stdio::piped())
        .spawn()
        .expect("yes runs");
    let input = endless.stdout.take().expect("piped");
    let output = outrider(&["generate", "--prompt-file", "-"])
        .stdin(input)
        .output()
        .expect("the binary runs");
    let _ = endless.kill();
    let _ = endless.wait();
    assert!(!output.status.success());
    says(
        &String::from_utf8_lossy(&output.stderr),
        "--prompt-file: standard input cannot be read: more than 4 MiB (4194304 bytes)",
    );
    says(
        &refused(&["generate", "--prompt-file", "/dev/zero"]),
        "--prompt-file: /dev/zero cannot be read: more than 4 MiB (4194304 bytes)",
    );
}

#[test]
fn a_file_that_no_request_holds_is_told_in_words_of_the_command() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("text");
    for (bytes, told) in [
        (
            20_000_000,
            "cannot be read: more than 4 MiB (4194304 bytes)",
        ),
        // The prompt alone would do; the request has fields beside it.
        (4 << 20, "prompt: a request of 41943"),
    ] {
        std::fs::write(file.path(), "y".repeat(bytes)).expect("written");
        let said = refused(&["generate", "--prompt-file", path]);
        says(&said, told);
        assert!(!said.contains("message length"), "{said}");
    }
}
