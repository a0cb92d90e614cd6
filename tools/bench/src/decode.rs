//! `outrider-bench decode`: what a decoding step costs, how much of it is not spent in matrix
//! products, how near it is to what memory allows, and what more positions cost.

mod candle;
mod llama_cpp;
mod metrics;
mod products;
pub(crate) mod subject;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use model::gguf_writer::{self, FileFormat};
use model::{Checkpoint, Cpu, WeightFormat};

use self::{llama_cpp::LlamaCpp, metrics::DecodeFigures, subject::DecodeSubject};
use super::models::{self, MeasuredModelArgs, WhichModel};
use super::timing::in_turn;
use crate::ranges;
use crate::read_probe::ReadProbe;
use crate::report::BenchReport;
use outrider::progress;

/// Positions scored in one forward; the first is a decoding step.
const POSITIONS: [usize; 5] = [1, 2, 5, 8, 16];

/// Positions of a verified block, at which llama.cpp is compared too.
const BLOCK: usize = 5;

/// Arguments of `outrider-bench decode`.
#[derive(Clone, Debug, Args)]
pub(super) struct DecodeArgs {
    #[command(flatten)]
    models: MeasuredModelArgs,
    /// What computes: our own runtime, or candle, of each of whose families a random model of the sizes given is measured
    /// in f32, positions alone.
    #[arg(long, value_name = "ENGINE", default_value = "outrider")]
    engine: MeasuredEngine,
    /// Formats of the weights.
    #[arg(
        long,
        value_name = "FORMATS",
        value_delimiter = ',',
        default_value = "q8_0,f32",
        value_parser = models::format
    )]
    formats: Vec<WeightFormat>,
    /// Tokens that the sequence holds before what is measured.
    #[arg(long, value_name = "N", default_value_t = 128)]
    context: usize,
    /// Times that each figure is measured, in turn with the others; the median counts.
    #[arg(long, value_name = "N", default_value_t = 21)]
    repeats: usize,
    /// Measures llama.cpp too, in the same turns, on as many threads and on the same GGUF file: the embedded
    /// target in Q8_0, which is written for it. Needs its Python binding, llama-cpp-python.
    #[arg(long)]
    llama_cpp: bool,
    /// A GGUF file to compare on instead, which both read.
    #[arg(long, value_name = "FILE", requires = "llama_cpp")]
    gguf: Option<PathBuf>,
    /// The Python interpreter that has llama-cpp-python.
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "python3",
        requires = "llama_cpp"
    )]
    python: PathBuf,
}

/// What computes the models that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MeasuredEngine {
    /// Our own runtime.
    Outrider,
    /// candle-transformers.
    Candle,
}

/// What is measured in a turn.
#[derive(Clone, Copy, Debug)]
enum DecodeCase {
    /// Forwards of so many positions.
    Forward(usize),
    /// The matrix products of a step alone.
    Products,
    /// Reading as many bytes as the weights have.
    Read,
    /// Forwards of so many positions by llama.cpp.
    LlamaCpp(usize),
}

/// Measures.
pub(super) fn run(args: &DecodeArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    ranges::at_least_one([("repeats", args.repeats)])?;
    ensure!(!args.formats.is_empty(), "--formats: none is named");
    args.models.check()?;
    report.title(format!("Decoding after {} tokens", args.context));
    if args.engine == MeasuredEngine::Candle {
        ensure!(!args.llama_cpp, "--llama-cpp: not beside --engine candle");
        return candle::run(args, report);
    }
    if args.llama_cpp {
        progress::show("loading llama.cpp")?;
        let written = written_gguf(args)?;
        let path = match (&args.gguf, &written) {
            (Some(path), _) => path.as_path(),
            (None, Some(written)) => written.path(),
            (None, None) => bail!("--gguf: no file"),
        };
        let llama_cpp = LlamaCpp::start(
            &args.python,
            path,
            args.context,
            Cpu::detect().threads.count(),
        )?;
        let checkpoint = Checkpoint::open(path).context("--gguf")?;
        let name = args.gguf.as_ref().map_or_else(
            || "embedded target".to_owned(),
            |path| path.display().to_string(),
        );
        // Of a file in another format ours is what the matrices are held in.
        let format = WeightFormat::Q8_0;
        let figures = measure(args, &name, &checkpoint, format, Some(llama_cpp))?;
        figures.add_to(report)?;
    }
    for &which in &args.models.models {
        progress::show("loading models")?;
        let (name, checkpoint) = args.models.open(which)?;
        for &format in &args.formats {
            if args.llama_cpp && which == WhichModel::Embedded && format == WeightFormat::Q8_0 {
                // Measured above, unless another file was.
                if args.gguf.is_none() {
                    continue;
                }
            }
            progress::show(&format!("{name}, {format}"))?;
            let figures = measure(args, &name, &checkpoint, format, None)?;
            figures.add_to(report)?;
        }
    }
    metrics::explain(report);
    Ok(())
}

/// The embedded target as a GGUF file, unless another one is named; removed when dropped.
fn written_gguf(args: &DecodeArgs) -> anyhow::Result<Option<tempfile::NamedTempFile>> {
    if args.gguf.is_some() {
        return Ok(None);
    }
    let (name, checkpoint) = args.models.open(WhichModel::Embedded)?;
    let mut file = tempfile::Builder::new().suffix(".gguf").tempfile()?;
    let format = FileFormat::Q8_0;
    let mut go_on = |_: model::progress::WorkProgress<'_>| ControlFlow::Continue(());
    gguf_writer::write(&checkpoint, &name, format, &mut file, &mut go_on)?;
    file.flush()?;
    Ok(Some(file))
}

fn measure(
    args: &DecodeArgs,
    name: &str,
    checkpoint: &Checkpoint,
    format: WeightFormat,
    mut other: Option<LlamaCpp>,
) -> anyhow::Result<DecodeFigures> {
    let most = POSITIONS[POSITIONS.len() - 1];
    let mut subject = DecodeSubject::new(checkpoint, format, args.context, most)?;
    let bytes = models::stored_bytes(models::parameters(checkpoint.config()), format);
    let probe = ReadProbe::new(bytes);
    let mut products = subject.room(1)?;
    let count = subject.enough()?;

    // What is compared with the first comes soon after it.
    let mut cases: Vec<DecodeCase> = vec![
        DecodeCase::Forward(POSITIONS[0]),
        DecodeCase::Products,
        DecodeCase::Read,
    ];
    cases.extend(POSITIONS[1..].iter().copied().map(DecodeCase::Forward));
    if other.is_some() {
        cases.extend([DecodeCase::LlamaCpp(1), DecodeCase::LlamaCpp(BLOCK)]);
    }
    let times = in_turn(args.repeats, &cases, |case| match (*case, &mut other) {
        (DecodeCase::Forward(positions), _) => subject.forwards(positions, count),
        (DecodeCase::Products, _) => subject.products(&mut products, count),
        (DecodeCase::Read, _) => Ok(subject::passes(&probe, count)),
        (DecodeCase::LlamaCpp(positions), Some(other)) => {
            // Whatever threads of ours still spin for work go to sleep meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(5));
            other.forwards(positions, count as usize)
        }
        (DecodeCase::LlamaCpp(_), None) => unreachable!("is no case without it"),
    })?;
    let [step, products, read] = times[..3] else {
        unreachable!("there are as many figures as cases")
    };
    let (several, llama_cpp) = times[3..].split_at(POSITIONS.len() - 1);
    let forwards = [&[step], several].concat();
    Ok(DecodeFigures {
        on: name.to_owned(),
        format,
        context: args.context,
        bytes: probe.bytes(),
        positions: POSITIONS.into_iter().zip(forwards).collect(),
        products,
        read,
        llama_cpp: llama_cpp.first().copied().zip(llama_cpp.get(1).copied()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    fn args(flags: &[&str]) -> DecodeArgs {
        let small = ["--models=random", "--hidden=64", "--layers=1"];
        parsed(&[&small[..], &["--vocab=4096", "--repeats=2"], flags].concat())
    }

    #[test]
    fn a_step_and_its_parts_are_measured() {
        let args = args(&["--context=7", "--formats=f32"]);
        let (name, checkpoint) = args.models.open(WhichModel::Random).expect("a model");
        let figures = measure(&args, &name, &checkpoint, WeightFormat::F32, None);
        let figures = figures.expect("measured");

        let mut report = BenchReport::quiet();
        figures.add_to(&mut report).expect("nothing is printed");
        let step = &report.objects("steps")[0];
        assert!(step["ms_per_token"].as_f64().expect("a number") > 0.0);
        assert!(step["outside_products"].as_f64().expect("a number") < 1.0);
        let positions = report.objects("positions");
        assert_eq!(positions.len(), POSITIONS.len());
        assert_eq!(positions[0]["ratio"], 1.0);
        assert!(report.rows("llama-cpp").is_empty());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |flags: &[&str]| {
            run(&args(flags), &mut BenchReport::quiet())
                .expect_err("refused")
                .to_string()
        };
        assert!(refused(&["--repeats=0"]).starts_with("--repeats: 0"));
        assert!(refused(&["--context=0"]).starts_with("--context: 0"));
        assert!(refused(&["--context=2040"]).starts_with("--context: 2040"));
    }
}
