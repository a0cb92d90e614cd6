//! `outrider-bench port`: what the engine port costs over llama.cpp's crate alone.

use std::hint::black_box;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use llama_cpp::{Bare, KvType, Settings};
use model::gguf_writer::{self, FileFormat};
use model::llama_cpp::LlamaCache;
use model::progress::WorkProgress;
use model::{LlamaModel, embedded};
use outrider::progress;
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

use crate::ranges;
use crate::report::{BenchReport, number, only_json, text};
use crate::timing::in_turn;

/// Most that the port may take, as a multiple of the crate alone.
const GOAL: f64 = 1.1;

/// Sessions, and rows of each: a verified block, and a step of many.
const CASES: [(usize, usize); 2] = [(1, 5), (16, 1)];

/// Arguments of `outrider-bench port`.
#[derive(Clone, Debug, Args)]
pub(super) struct PortArgs {
    /// A GGUF file; without it the embedded target in Q8_0.
    #[arg(long, value_name = "FILE")]
    gguf: Option<PathBuf>,
    /// Tokens that each session holds before.
    #[arg(long, value_name = "N", default_value_t = 128)]
    context: usize,
    /// Threads of a forward.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,
    /// Forwards of one measurement.
    #[arg(long, value_name = "N", default_value_t = 8)]
    forwards: u32,
    /// Times that each figure is measured, in turn with the others; the median counts.
    #[arg(long, value_name = "N", default_value_t = 21)]
    repeats: usize,
}

/// Measures.
pub(super) fn run(args: &PortArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    ranges::at_least_one([
        ("repeats", args.repeats),
        ("context", args.context),
        ("forwards", args.forwards as usize),
    ])?;
    report.title("llama.cpp behind the port and by its crate alone".to_owned());
    progress::show("loading llama.cpp")?;
    let written = match args.gguf {
        Some(_) => None,
        None => Some(embedded_target()?),
    };
    let path = args.gguf.as_deref();
    let path = path.or(written.as_ref().map(tempfile::NamedTempFile::path));
    let path = path.unwrap_or_else(|| unreachable!("one is written where none is named"));
    let settings = Settings {
        threads: args.threads,
        ..Settings::default()
    };
    let cells = 16 * (args.context + 16);
    let mut bare = Bare::load(path, &settings, cells)?;
    let mut model = LlamaModel::load(path, &settings, KvType::F32)?;
    model.reserve(cells)?;
    let limit = model.shape().context_len.saturating_sub(16);
    ensure!(
        args.context <= limit,
        "--context: {} is out of range, expected 1 to {limit}",
        args.context
    );
    for (sessions, rows) in CASES {
        progress::show(&format!("{sessions} sessions, {rows} rows each"))?;
        let tokens: Vec<u32> = (0..args.context + rows)
            .map(|index| ((index * index * 31 + 7) % model.shape().vocab_size) as u32)
            .collect();
        let (held, more) = tokens.split_at(args.context);
        bare.fill(sessions, held)?;
        let mut port = Port::filled(&mut model, sessions, held)?;
        let times = in_turn(args.repeats, &[false, true], |through_port| {
            let began = Instant::now();
            for _ in 0..args.forwards {
                if *through_port {
                    port.forward(more)?;
                } else {
                    bare.forward(sessions, more, |row| {
                        black_box(row);
                    })?;
                }
            }
            Ok::<Duration, anyhow::Error>(began.elapsed() / args.forwards)
        })?;
        let row = vec![
            text("sessions", sessions),
            text("rows", rows),
            only_json("context", args.context),
            number("crate_ms", times[0].us / 1e3, 3).called("crate, ms"),
            number("port_ms", times[1].us / 1e3, 3).called("port, ms"),
            number("ratio", times[1].ratio, 3),
        ];
        report.row("port", row)?;
    }
    report.note(format!("ratio: the port over the crate alone, goal {GOAL}"));
    Ok(())
}

/// Sequences behind the port, all of one length.
struct Port<'a> {
    model: &'a mut LlamaModel,
    caches: Vec<LlamaCache>,
    rows: Rows,
    held: usize,
}

impl<'a> Port<'a> {
    fn filled(model: &'a mut LlamaModel, sessions: usize, tokens: &[u32]) -> anyhow::Result<Self> {
        let caches = (0..sessions).map(|_| model.new_cache()).collect();
        let mut filled = Self {
            model,
            caches,
            rows: Rows::default(),
            held: usize::MAX,
        };
        filled.forward(tokens)?;
        filled.held = tokens.len();
        Ok(filled)
    }

    /// Scores `tokens` at the end of each, and forgets them.
    fn forward(&mut self, tokens: &[u32]) -> anyhow::Result<()> {
        let segment = |cache| Segment {
            cache,
            tokens,
            parents: &[],
            scored_from: 0,
        };
        let mut batch: Vec<_> = self.caches.iter_mut().map(segment).collect();
        self.model.forward(&mut batch, &mut self.rows)?;
        let held = self.held;
        self.caches
            .iter_mut()
            .for_each(|cache| cache.truncate(held));
        black_box(&self.rows);
        Ok(())
    }
}

/// The embedded target as a GGUF file, which goes when it is dropped.
fn embedded_target() -> anyhow::Result<tempfile::NamedTempFile> {
    let checkpoint = embedded::model("target")?;
    let mut file = tempfile::Builder::new().suffix(".gguf").tempfile()?;
    let mut go_on = |_: WorkProgress<'_>| ControlFlow::Continue(());
    gguf_writer::write(
        &checkpoint,
        "target",
        FileFormat::Q8_0,
        &mut file,
        &mut go_on,
    )?;
    file.flush()?;
    Ok(file)
}
