//! A user's own program that scores outputs.

use std::io::{ErrorKind, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use net::bounded::{self, MAX_LIST_BYTES};
use outrider::prompts::Example;
use serde::Deserialize;
use serde_json::json;

/// How long a program that has answered is waited for before it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scorer {
    program: String,
    arguments: Vec<String>,
}

/// What the program answers to an output.
#[derive(Deserialize)]
struct Answer {
    score: f64,
}

impl Scorer {
    /// Reads a program with its arguments, quoted as in a shell.
    ///
    /// # Errors
    /// If it names none, or a quote does not end.
    pub(super) fn parse(line: &str) -> anyhow::Result<Self> {
        let words = shlex::split(line);
        let words = words.with_context(|| format!("--scorer: {line}: a quote does not end"))?;
        let [program, arguments @ ..] = &words[..] else {
            bail!("--scorer: expected a program, and its arguments behind it");
        };
        Ok(Self {
            program: program.clone(),
            arguments: arguments.to_vec(),
        })
    }

    /// Returns the scores of `outputs`, each of an example, in their order: of one run of the program, which reads a JSON
    /// line {"id", "prompt", "output", "references"} of each and answers with a JSON line {"score"} each. It is ended if this
    /// future is dropped.
    ///
    /// # Errors
    /// If the program cannot be started, fails, or answers something else.
    pub(super) async fn scores(&self, outputs: &[(&Example, &str)]) -> anyhow::Result<Vec<f64>> {
        let mut lines = String::new();
        for (example, output) in outputs {
            let Example {
                id,
                text,
                references,
                ..
            } = example;
            let line =
                json!({ "id": id, "prompt": text, "output": output, "references": references });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        let mut running = Running(self.start()?);
        let (stdin, stdout) = (running.0.stdin.take(), running.0.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
            bail!("--scorer: {self} has no standard input or output");
        };
        // It may answer while it still reads.
        let writing = thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let reading = move || {
            let answers = bounded::text(stdout, MAX_LIST_BYTES);
            (answers, writing.join())
        };
        let (answers, written) = tokio::task::spawn_blocking(reading).await?;
        let answers = answers.with_context(|| format!("--scorer: what {self} says"))?;
        let status = running.ended().await?;
        ensure!(status.success(), "--scorer: {self} failed: {status}");
        match written {
            Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => {
                return Err(error).with_context(|| format!("--scorer: {self}"));
            }
            _ => {}
        }
        self.read(&answers, outputs.len())
    }

    fn start(&self) -> anyhow::Result<Child> {
        Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("--scorer: {self} cannot be started"))
    }

    /// Reads one score of each of `count` lines.
    fn read(&self, answers: &str, count: usize) -> anyhow::Result<Vec<f64>> {
        let scores = (1..).zip(answers.lines()).map(|(number, line)| {
            let answer: Answer = serde_json::from_str(line).map_err(|error| {
                anyhow!("--scorer: {self}, line {number} of its answers: {error}; expected {{\"score\": x}}")
            })?;
            Ok(answer.score)
        });
        let scores: Vec<f64> = scores.collect::<anyhow::Result<_>>()?;
        let found = scores.len();
        ensure!(
            found == count,
            "--scorer: {self} answered {found} lines to {count} outputs; expected one each"
        );
        Ok(scores)
    }
}

impl std::fmt::Display for Scorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}'", self.program)
    }
}

/// A program that is ended when nobody waits for it any more.
struct Running(Child);

impl Running {
    /// Completes when it has ended.
    async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            // It has closed its output, and so is about to end.
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ended long ago, but where it was given up.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use outrider::prompts::Form;

    use super::*;

    fn example(text: &str) -> Example {
        Example {
            id: None,
            kind: String::new(),
            text: text.to_owned(),
            references: vec!["2".to_owned()],
            form: Form::Own,
        }
    }

    #[test]
    fn a_program_and_its_arguments_are_quoted_as_in_a_shell() {
        let scorer = Scorer::parse("python3 'my scorer.py' --strict").expect("a program");
        assert_eq!(scorer.program, "python3");
        assert_eq!(scorer.arguments, ["my scorer.py", "--strict"]);
        for (line, part) in [("", "expected a program"), ("a 'b", "a quote does not end")] {
            let error = Scorer::parse(line).expect_err("refused").to_string();
            assert!(
                error.starts_with("--scorer: ") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn each_line_of_its_answers_is_a_score() {
        let scorer = Scorer::parse("judge").expect("a program");
        let scores = scorer.read("{\"score\": 1}\n{\"score\": 0.25, \"why\": \"near\"}\n", 2);
        assert_eq!(scores.expect("scores"), [1.0, 0.25]);
        for (answers, part) in [
            ("{\"score\": 1}\n", "answered 1 lines to 2 outputs"),
            ("{\"score\": 1}\nnonsense\n", "line 2 of its answers"),
            ("{\"score\": \"good\"}\n", "expected {\"score\": x}"),
        ] {
            let error = scorer.read(answers, 2).expect_err("refused").to_string();
            assert!(
                error.starts_with("--scorer: 'judge'") && error.contains(part),
                "{error}"
            );
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_program_reads_all_outputs_and_answers_to_each() {
        let (one, other) = (example("1+1="), example("2+2="));
        let outputs = [(&one, "2"), (&other, "a\nb")];
        // Answers as many lines as it reads.
        let scorer =
            Scorer::parse("sed 's/.*\"output\":\"2\".*/{\"score\": 1}/;t;s/.*/{\"score\": 0}/'");
        let scores = scorer.expect("a program").scores(&outputs).await;
        assert_eq!(scores.expect("scores"), [1.0, 0.0]);
        for (line, part) in [
            ("false", "'false' failed: exit status: 1"),
            ("true", "answered 0 lines to 2 outputs"),
            ("no/such/program", "'no/such/program' cannot be started"),
        ] {
            let scorer = Scorer::parse(line).expect("a program");
            let error = scorer.scores(&outputs).await.expect_err("refused");
            assert!(format!("{error:#}").contains(part), "{error:#}");
        }
    }
}
