//! `outrider quantize`: a model as a GGUF file.

mod destination;

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use model::gguf_writer::{self, FileFormat, GgufWriteError, WrittenGguf};
use model::progress::{ProgressObserver, WorkProgress};
use model::source::ModelSource;

use crate::interrupt;
use crate::progress::Bars;
use destination::GgufDestination;

/// Arguments of `outrider quantize`.
#[derive(Debug, Args)]
pub(crate) struct QuantizeArgs {
    /// The model: whatever a model's path may be in the configuration, such as a checkpoint folder, a
    /// GGUF file, or `embedded:target`.
    #[arg(value_name = "SRC")]
    source: String,
    /// The file to write, `.gguf` by custom.
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// What matrices are written in: q8_0, q4_k, f16 or f32. Rows that are no multiple of 256 are
    /// written in q8_0 instead of q4_k, and those that are no multiple of 32 in f32.
    #[arg(long, value_name = "FORMAT")]
    to: FileFormat,
    /// Replaces DST if it is there.
    #[arg(long)]
    force: bool,
}

/// Writes the file.
///
/// # Errors
/// Names the argument that is wrong; DST is then as it was.
pub(crate) async fn run(args: QuantizeArgs) -> anyhow::Result<ExitCode> {
    // Listened for before there is anything to leave behind.
    let mut signals = interrupt::listen()?;
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    let mut work = tokio::task::spawn_blocking(move || quantize(&args, &flag));
    let (outcome, code) = tokio::select! {
        outcome = &mut work => (outcome, 0),
        // The file that was begun is removed by the one who writes it.
        signal = signals.next() => {
            stopped.store(true, Ordering::Relaxed);
            // Said at once: a large tensor, or a slow disk, can take a while. That nobody can be told, as
            // after a hang-up, is no reason not to tidy up.
            let _unseen = writeln!(anstream::stderr(), "interrupted: stopping");
            (work.await, signal.exit_code)
        }
    };
    match outcome? {
        Err(error) if matches!(error.downcast_ref(), Some(GgufWriteError::Stopped)) => {
            Ok(ExitCode::from(code))
        }
        other => other.map(|()| ExitCode::SUCCESS),
    }
}

fn quantize(args: &QuantizeArgs, stopped: &AtomicBool) -> anyhow::Result<()> {
    let mut destination = GgufDestination::create(&args.destination, args.force).context("DST")?;
    let source = ModelSource::new(&args.source);
    let bars = Bars::on_stderr();
    let observer = bars.observer();
    let checkpoint = source.open_observed(&observer).context("SRC")?;
    let name = args.destination.file_name().unwrap_or_default();
    let mut report = QuantizeReport {
        file: name.to_string_lossy().into_owned(),
        bar: std::io::stderr().is_terminal().then_some(observer),
        last: None,
    };
    let mut progress = |at: WorkProgress<'_>| {
        report.show(at);
        if stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let written = gguf_writer::write(
        &checkpoint,
        &source.served_name(),
        args.to,
        &mut destination.file,
        &mut progress,
    );
    bars.end();
    let written = written.map_err(|error| destination.explain(error))?;
    gguf_writer::verify(&checkpoint, destination.path())?;
    destination.keep().context("DST")?;
    // The file is in its place: who cannot be told of it is no failure of the command's work, but told so.
    writeln!(anstream::stdout(), "{}", summary(args, &written))
        .context("the file was written, but standard output cannot be")
}

/// Returns one line on what was written.
fn summary(args: &QuantizeArgs, written: &WrittenGguf) -> String {
    let megabytes = megabytes(written.bytes);
    let (path, format, tensors) = (args.destination.display(), args.to, written.tensors);
    let others: Vec<String> = (written.fallbacks.iter())
        .map(|(format, count)| {
            let matrices = if *count == 1 { "matrix" } else { "matrices" };
            format!("{count} {matrices} in {format}")
        })
        .collect();
    let others = match others.as_slice() {
        [] => String::new(),
        some => format!(
            ", but {} because of the length of their rows",
            some.join(" and ")
        ),
    };
    format!("{path}: {tensors} tensors, {megabytes:.1} MB in {format}{others}")
}

/// Between lines where there is no terminal: a log must not fill with them.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Tells how far it is.
struct QuantizeReport {
    file: String,
    bar: Option<Arc<dyn ProgressObserver>>,
    last: Option<Instant>,
}

impl QuantizeReport {
    /// Shows where writing is. That nobody can be told is no reason to stop.
    fn show(&mut self, at: WorkProgress<'_>) {
        if let Some(bar) = &self.bar {
            bar.progress(WorkProgress {
                name: &self.file,
                ..at
            });
            return;
        }
        let due = self.last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
        if due {
            self.last = Some(Instant::now());
            anstream::eprintln!("{}", line(at));
        }
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn line(at: WorkProgress<'_>) -> String {
    let (done, total) = (megabytes(at.done_bytes), megabytes(at.total_bytes));
    format!("{done:.1} of {total:.1} MB, {}", at.name)
}

#[cfg(test)]
mod tests {
    use model::progress::WorkKind;

    use super::*;

    #[test]
    fn a_line_tells_bytes_and_the_tensor() {
        let at = WorkProgress {
            work: WorkKind::Writing,
            name: "output.weight",
            done_bytes: 1_500_000,
            total_bytes: 3_000_000,
        };
        assert_eq!(line(at), "1.5 of 3.0 MB, output.weight");
    }
}
