//! `outrider-bench loading`: what starting with a model takes, as multiples of reading its files.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use model::source::ModelSource;
use model::{Checkpoint, Cpu, Model};
use speculation::ports::{LanguageModel, Rows, Segment};

use crate::report::{BenchReport, number, text};
use crate::timing::{in_turn, microseconds};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;
/// Forwards of one token after a model was loaded.
const STEPS: usize = 8;

/// Arguments of `outrider-bench loading`.
#[derive(Debug, Args)]
pub(super) struct LoadingArgs {
    /// A checkpoint folder or a GGUF file.
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    /// Format of the weights.
    #[arg(long, value_name = "DTYPE", default_value = "auto")]
    dtype: String,
    /// Folder for packed weights, as `weights_cache` names one: loads from there, too.
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Turns, after one that fills the page cache, and the folder.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: usize,
}

/// A start that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadingCase {
    /// The bytes of all weights, read into the same buffer again and again by one thread.
    Reading,
    /// From closed files to a model that computes.
    Loading,
    /// Loading as a service does it: with the tokenizer, and the fingerprints that peers compare.
    Starting,
    /// Starting with packed weights from the folder.
    StartingFromCache,
}

impl LoadingCase {
    fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading the files",
            Self::Loading => "loading",
            Self::Starting => "starting",
            Self::StartingFromCache => "starting from the cache",
        }
    }
}

/// Measures.
pub(super) fn run(args: &LoadingArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    ensure!(
        args.repeats > 0,
        "--repeats: 0 is out of range, expected at least 1"
    );
    let source = |cache: &str| ModelSource {
        dtype: args.dtype.clone(),
        weights_cache: cache.to_owned(),
        ..ModelSource::new(args.model.to_string_lossy())
    };
    let folder = args.cache.as_ref().map(|folder| folder.to_string_lossy());
    let sources = MeasuredSources {
        packing: source(""),
        cached: folder.map(|folder| source(&folder)),
    };
    let files = weight_files(&args.model).context("--model")?;
    let bytes = files.iter().map(|file| Ok(file.metadata()?.len()));
    let bytes: u64 = bytes.sum::<std::io::Result<u64>>().context("--model")?;
    let mut cases = vec![
        LoadingCase::Reading,
        LoadingCase::Loading,
        LoadingCase::Starting,
    ];
    cases.extend(
        args.cache
            .is_some()
            .then_some(LoadingCase::StartingFromCache),
    );
    let mut steps = vec![f64::INFINITY; cases.len()];
    let times = in_turn(args.repeats, &cases, |case| {
        let (time, model) = time(*case, &sources, &files)?;
        if let Some(model) = model {
            let step = &mut steps[*case as usize];
            *step = step.min(step_us(model)?);
        }
        Ok(time)
    })?;
    let threads = Cpu::detect().threads.count();
    report.title(format!(
        "Loading {}, {:.2} GB, {threads} threads",
        sources.packing.served_name(),
        bytes as f64 / 1e9
    ));
    for ((case, time), step_us) in cases.iter().zip(times).zip(steps) {
        let step_ms = step_us.is_finite().then_some(step_us / 1e3);
        report.row(
            "loading",
            vec![
                text("what", case.name()),
                number("ms", time.us / 1e3, 1),
                number("gbs", bytes as f64 / time.us / 1e3, 2).called("GB/s of the files"),
                number("ratio", time.ratio, 2).called("over reading"),
                number("step_ms", step_ms, 2).called("quickest step, ms"),
            ],
        )?;
    }
    report.note("medians; ratios within a turn; files are in the page cache");
    report
        .note("a step is a forward of one token, whose time tells what memory the weights are in");
    Ok(())
}

/// The model as it is loaded without a folder for packed weights, and with it.
struct MeasuredSources {
    packing: ModelSource,
    cached: Option<ModelSource>,
}

/// The time that `case` takes, and the model that was loaded.
fn time(
    case: LoadingCase,
    sources: &MeasuredSources,
    files: &[PathBuf],
) -> anyhow::Result<(Duration, Option<Model>)> {
    let source = match (case, &sources.cached) {
        (LoadingCase::StartingFromCache, Some(cached)) => cached,
        _ => &sources.packing,
    };
    let began = Instant::now();
    let model = match case {
        LoadingCase::Reading => {
            read(files)?;
            None
        }
        LoadingCase::Loading => {
            let checkpoint = Checkpoint::open(Path::new(&source.path))?;
            let computation = source.computation_of(&checkpoint)?;
            Some(checkpoint.load(computation)?)
        }
        LoadingCase::Starting | LoadingCase::StartingFromCache => Some(source.load()?.model),
    };
    Ok((began.elapsed(), model))
}

/// The quickest of some forwards of one token, in microseconds.
fn step_us(mut model: Model) -> anyhow::Result<f64> {
    let mut cache = model.new_cache();
    let mut rows = Rows::default();
    let mut quickest = f64::INFINITY;
    if model.shape().source_len > 0 {
        return Ok(quickest);
    }
    for _ in 0..STEPS {
        let segment = Segment {
            cache: &mut cache,
            tokens: &[1],
            parents: &[],
            scored_from: 0,
        };
        let began = Instant::now();
        model.forward(&mut [segment], &mut rows)?;
        quickest = quickest.min(microseconds(began.elapsed()));
    }
    Ok(quickest)
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
        let folder = tempfile::tempdir().expect("a folder");
        let args = LoadingArgs {
            model: model.into(),
            dtype: "q8_0".to_owned(),
            cache: Some(folder.path().join("cache")),
            repeats: 1,
        };
        let mut report = BenchReport::quiet();
        run(&args, &mut report).expect("measured");
        let rows = report.objects("loading");
        let names: Vec<_> = rows.iter().map(|row| row["what"].clone()).collect();
        let expected = [
            "reading the files",
            "loading",
            "starting",
            "starting from the cache",
        ];
        assert_eq!(names, expected);
        assert!(rows[0]["step_ms"].is_null() && rows[3]["step_ms"].as_f64() > Some(0.0));
        assert!(args.cache.is_some_and(|folder| folder.is_dir()));
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
                cache: None,
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
