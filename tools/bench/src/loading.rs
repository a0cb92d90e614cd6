//! `outrider-bench loading`: what starting with a model takes, as multiples of reading its files.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use model::source::ModelSource;
use model::{Checkpoint, Cpu};

use crate::report::{BenchReport, number, text};
use crate::timing::in_turn;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Arguments of `outrider-bench loading`.
#[derive(Debug, Args)]
pub(super) struct LoadingArgs {
    /// A checkpoint folder or a GGUF file.
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    /// Format of the weights.
    #[arg(long, value_name = "DTYPE", default_value = "auto")]
    dtype: String,
    /// Turns, after one that fills the page cache.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: usize,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadingCase {
    /// The bytes of all weights, read into the same buffer again and again by one thread.
    Reading,
    /// From closed files to a model that computes.
    Loading,
    /// What a service does: the same, and the fingerprints that peers compare.
    Starting,
}

impl LoadingCase {
    fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading the files",
            Self::Loading => "loading",
            Self::Starting => "starting",
        }
    }
}

/// Measures.
pub(super) fn run(args: &LoadingArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    ensure!(
        args.repeats > 0,
        "--repeats: 0 is out of range, expected at least 1"
    );
    let source = ModelSource {
        dtype: args.dtype.clone(),
        ..ModelSource::new(args.model.to_string_lossy())
    };
    let files = weight_files(&args.model).context("--model")?;
    let bytes = files.iter().map(|file| Ok(file.metadata()?.len()));
    let bytes: u64 = bytes.sum::<std::io::Result<u64>>().context("--model")?;
    let cases = [
        LoadingCase::Reading,
        LoadingCase::Loading,
        LoadingCase::Starting,
    ];
    let times = in_turn(args.repeats, &cases, |case| time(*case, &source, &files))?;
    let threads = Cpu::detect().threads.count();
    report.title(format!(
        "Loading {}, {:.2} GB, {threads} threads",
        source.served_name(),
        bytes as f64 / 1e9
    ));
    for (case, time) in cases.iter().zip(times) {
        report.row(
            "loading",
            vec![
                text("what", case.name()),
                number("ms", time.us / 1e3, 1),
                number("gbs", bytes as f64 / time.us / 1e3, 2).called("GB/s of the files"),
                number("ratio", time.ratio, 2).called("over reading"),
            ],
        )?;
    }
    report.note("medians; ratios within a turn; files are in the page cache");
    Ok(())
}

fn time(case: LoadingCase, source: &ModelSource, files: &[PathBuf]) -> anyhow::Result<Duration> {
    let began = Instant::now();
    // What was loaded is given back after the time was taken.
    let _loaded: Box<dyn std::any::Any> = match case {
        LoadingCase::Reading => Box::new(read(files)?),
        LoadingCase::Loading => {
            let checkpoint = Checkpoint::open(Path::new(&source.path))?;
            let computation = source.computation_of(&checkpoint)?;
            Box::new(checkpoint.load(computation)?)
        }
        LoadingCase::Starting => Box::new(source.load()?),
    };
    Ok(began.elapsed())
}

/// Reads all files to their ends.
fn read(files: &[PathBuf]) -> std::io::Result<u64> {
    let mut buffer = vec![0; READ_BYTES];
    let mut bytes = 0;
    for path in files {
        let mut file = File::open(path)?;
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            bytes += count as u64;
            black_box(&buffer);
        }
    }
    Ok(bytes)
}

/// The files that hold the weights of the model at `path`.
fn weight_files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let is_of_weights = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("model") && name.ends_with(".safetensors")
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        files.push(entry?.path());
    }
    files.retain(is_of_weights);
    ensure!(
        !files.is_empty(),
        "{} holds no model*.safetensors",
        path.display()
    );
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_its_row() {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default/draft");
        let args = LoadingArgs {
            model: model.into(),
            dtype: "q8_0".to_owned(),
            repeats: 1,
        };
        let mut report = BenchReport::quiet();
        run(&args, &mut report).expect("measured");
        let rows = report.objects("loading");
        let names: Vec<_> = rows.iter().map(|row| row["what"].clone()).collect();
        assert_eq!(names, ["reading the files", "loading", "starting"]);
        assert_eq!(rows[0]["ratio"], 1.0);
        for row in rows {
            assert!(row["ms"].as_f64() > Some(0.0), "{row}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |model: &str, repeats| {
            let args = LoadingArgs {
                model: model.into(),
                dtype: "auto".to_owned(),
                repeats,
            };
            let refused = run(&args, &mut BenchReport::quiet()).expect_err("refused");
            format!("{refused:#}")
        };
        assert!(refused("no/such/folder", 1).starts_with("--model: "));
        assert!(refused(".", 1).contains("holds no model*.safetensors"));
        assert!(refused(".", 0).starts_with("--repeats: 0"));
    }
}
