//! `outrider-bench contexts`: what a long context costs: a step, a block, a prompt, sessions together.

mod prompt;
mod sessions;
mod step;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use model::computation::AUTOMATIC;
use model::{Checkpoint, CpuFormat, KvFormat, ModelConfig};
use outrider::progress;

use crate::decode::subject::DecodeSubject;
use crate::ranges;
use crate::report::BenchReport;

/// Positions of a verified block.
const BLOCK: usize = 5;

/// Arguments of `outrider-bench contexts`.
#[derive(Clone, Debug, Args)]
pub(super) struct ContextsArgs {
    /// A GGUF file to measure on; random weights in the shape of SmolLM2-135M without it.
    #[arg(long, value_name = "FILE")]
    gguf: Option<PathBuf>,
    /// Tokens that a sequence holds before a step; each more than the one before.
    #[arg(
        long,
        value_name = "NS",
        value_delimiter = ',',
        default_value = "128,4096,7900"
    )]
    contexts: Vec<usize>,
    /// Tokens of the prompt; 0 measures none.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    prompt: usize,
    /// Sessions that decode together; 0 measures none.
    #[arg(long, value_name = "N", default_value_t = 16)]
    sessions: usize,
    /// Tokens that each of these holds before.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    session_context: usize,
    /// Format that keys and values are held in: q8_0, f16 or f32; auto is f32 beside weights in f32, and f16 beside
    /// others.
    #[arg(long, value_name = "FORMAT", default_value = AUTOMATIC)]
    kv_dtype: String,
    /// Times that each figure is measured, in turn with what it is compared with; the median counts.
    #[arg(long, value_name = "N", default_value_t = 11)]
    repeats: usize,
}

impl ContextsArgs {
    fn check(&self) -> anyhow::Result<()> {
        ranges::at_least_one([
            ("repeats", self.repeats),
            ("session-context", self.session_context),
        ])?;
        ensure!(
            self.contexts.first().is_none_or(|first| *first > 0)
                && self.contexts.is_sorted_by(|a, b| a < b),
            "--contexts: expected numbers from 1 on, each larger than the one before"
        );
        self.kv()?;
        Ok(())
    }

    /// Returns the format of keys and values, if it is not left open.
    fn kv(&self) -> anyhow::Result<Option<KvFormat>> {
        let kv = (self.kv_dtype != AUTOMATIC).then(|| self.kv_dtype.parse::<KvFormat>());
        kv.transpose().context("--kv-dtype")
    }

    /// Returns the format that weights go best in, and that of keys and values.
    fn format(&self, checkpoint: &Checkpoint) -> anyhow::Result<CpuFormat> {
        let format = CpuFormat::from(checkpoint.best_format());
        let kv = self.kv()?.unwrap_or(format.kv);
        Ok(CpuFormat { kv, ..format })
    }

    fn open(&self) -> anyhow::Result<(String, Checkpoint)> {
        if let Some(path) = &self.gguf {
            let name = path.file_stem().unwrap_or(path.as_os_str());
            let checkpoint = Checkpoint::open(path).context("--gguf")?;
            return Ok((name.to_string_lossy().into_owned(), checkpoint));
        }
        let checkpoint = Checkpoint::random(smollm2(), 1).context("the random model")?;
        Ok(("random, as SmolLM2-135M".to_owned(), checkpoint))
    }
}

/// The shape of SmolLM2-135M.
fn smollm2() -> ModelConfig {
    ModelConfig {
        vocab_size: 49_152,
        hidden_size: 576,
        intermediate_size: 1536,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        context_len: 8192,
        attention_scale: 0.125,
        ..ModelConfig::llama()
    }
}

/// Measures.
pub(super) fn run(args: &ContextsArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    args.check()?;
    report.title("Long contexts");
    progress::show("loading the model")?;
    let (name, checkpoint) = args.open()?;
    measure(args, &name, &checkpoint, report)
}

fn measure(
    args: &ContextsArgs,
    name: &str,
    checkpoint: &Checkpoint,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let format = args.format(checkpoint)?;
    if let Some(first) = args.contexts.first() {
        let mut subject = DecodeSubject::new(checkpoint, format, *first, BLOCK)?;
        for &context in &args.contexts {
            progress::show(&format!("{name}: steps after {context} tokens"))?;
            subject.fill(context)?;
            let row = step::measure(&mut subject, checkpoint.config(), format, args.repeats)?;
            report.row("contexts", row.fields(name, format.kv))?;
        }
    }
    if args.prompt > 0 {
        progress::show(&format!("{name}: a prompt of {} tokens", args.prompt))?;
        let row = prompt::measure(checkpoint, format, args.prompt)?;
        report.row("prompts", row.fields(name, format.kv))?;
    }
    if args.sessions > 0 {
        progress::show(&format!("{name}: {} sessions", args.sessions))?;
        let (count, context) = (args.sessions, args.session_context);
        let row = sessions::measure(checkpoint, format, count, context, args.repeats)?;
        report.row("together", row.fields(name, format.kv))?;
    }
    report.note(format!(
        "limit: reading weights, keys and values at the GB/s measured in the same turns (goal: a step at most {:.1} \
         of it); block: {BLOCK} positions over one (goal: {:.2}); attention: the share of a prompt's time that it \
         takes more than as many forwards without a context (goal: at most {:.0}%)",
        step::LIMIT_GOAL,
        step::BLOCK_GOAL,
        100.0 * prompt::SHARE_GOAL,
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    #[test]
    fn every_table_has_its_row() {
        let args: ContextsArgs = parsed(&[
            "--contexts=5,300",
            "--prompt=600",
            "--sessions=2",
            "--session-context=20",
            "--repeats=1",
            "--kv-dtype=q8_0",
        ]);
        args.check().expect("in range");
        let config = ModelConfig {
            vocab_size: 64,
            hidden_size: 64,
            intermediate_size: 64,
            layers: 1,
            heads: 2,
            kv_heads: 1,
            head_dim: 32,
            context_len: 1024,
            ..smollm2()
        };
        let checkpoint = Checkpoint::random(config, 1).expect("a model");
        let mut report = BenchReport::quiet();
        measure(&args, "small", &checkpoint, &mut report).expect("measured");
        let steps = report.objects("contexts");
        assert_eq!(
            (&steps[0]["context"], &steps[1]["context"]),
            (&5.into(), &300.into())
        );
        assert_eq!(steps[0]["kv_dtype"], "q8_0");
        assert!(steps[1]["of_limit"].as_f64().expect("a number") > 0.0);
        let prompt = &report.objects("prompts")[0];
        assert!(prompt["attention"].as_f64().expect("a number") < 1.0);
        assert_eq!(report.objects("together")[0]["sessions"], 2);
    }

    #[test]
    fn contexts_that_do_not_grow_are_refused() {
        for flags in [
            &["--contexts=5,5"][..],
            &["--contexts=0,1"],
            &["--repeats=0"],
            &["--kv-dtype=q4_0"],
        ] {
            let refused = run(&parsed(flags), &mut BenchReport::quiet());
            assert!(refused.expect_err("refused").to_string().starts_with("--"));
        }
    }
}
