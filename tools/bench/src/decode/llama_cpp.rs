//! llama.cpp in a process of its own, measured in turn with this one through its Python binding.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

const SCRIPT: &str = include_str!("forwards.py");

/// What to do where the binding is missing.
const INSTALL: &str = "install it with `pip install llama-cpp-python` (it compiles llama.cpp: cmake and a \
                       C++ compiler are needed), and name the interpreter that has it with --python";

/// llama.cpp with a model loaded and a context filled.
pub(super) struct LlamaCpp {
    child: Child,
    requested: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl LlamaCpp {
    /// Loads `gguf` with `python`'s binding, to run on `threads` threads after `context` tokens.
    ///
    /// # Errors
    /// If there is no such interpreter, it lacks the binding, or llama.cpp refuses the file.
    pub(super) fn start(
        python: &Path,
        gguf: &Path,
        context: usize,
        threads: usize,
    ) -> anyhow::Result<Self> {
        ensure!(
            gguf.is_file(),
            "--gguf: {} is no file: `outrider quantize` writes one",
            gguf.display()
        );
        let mut child = Command::new(python)
            .args(["-c", SCRIPT])
            .arg(gguf)
            .args([context.to_string(), threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("--python: {} cannot be run", python.display()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requested, answers) = pipes.context("pipes to the interpreter")?;
        let mut started = Self {
            child,
            requested,
            answers: BufReader::new(answers),
        };
        let answer = started.answer()?;
        match answer.split_once(' ').unwrap_or((&answer, "")) {
            ("ready", _) => Ok(started),
            ("import", error) => bail!(
                "--llama-cpp: {} cannot import llama_cpp ({error}): {INSTALL}",
                python.display()
            ),
            ("load", error) => bail!("--gguf: {}: {error}", gguf.display()),
            _ => bail!("--llama-cpp: the binding says {answer:?}"),
        }
    }

    /// The mean time of `count` forwards that score `positions` positions.
    ///
    /// # Errors
    /// If llama.cpp fails.
    pub(super) fn forwards(&mut self, positions: usize, count: usize) -> anyhow::Result<Duration> {
        writeln!(self.requested, "{positions} {count}")?;
        self.requested.flush()?;
        let answer = self.answer()?;
        let nanoseconds = answer.parse();
        Ok(Duration::from_nanos(nanoseconds.with_context(|| {
            format!("--llama-cpp: the binding says {answer:?}")
        })?))
    }

    fn answer(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line)?;
        ensure!(
            read > 0,
            "--llama-cpp: the interpreter ended before it answered; llama-cpp-python of 2025 or later is \
             expected: {INSTALL}"
        );
        Ok(line.trim().to_owned())
    }
}

impl Drop for LlamaCpp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
