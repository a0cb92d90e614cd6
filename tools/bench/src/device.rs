//! `outrider-bench device`: whether a GPU computes what the CPU does, and how fast.

mod golden;
mod synthetic;
mod timed;

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use model::{ComputeDevice, NumberFormat};
use outrider::progress;

use self::{synthetic::Size, timed::DeviceTimes};
use crate::ranges;
use crate::report::{BenchReport, text};

/// Arguments of `outrider-bench device`.
#[derive(Clone, Debug, Args)]
pub(super) struct DeviceArgs {
    /// What computes: cuda, or cuda:N for GPU N; or cpu for candle's CPU device, which shows that the command works.
    #[arg(long, value_name = "DEVICE", default_value = "cuda", value_parser = place)]
    device: ComputeDevice,
    /// Tiny checkpoints with the numbers that Hugging Face transformers computed for them: tests/golden/models.
    #[arg(long, value_name = "FOLDER")]
    golden: Option<PathBuf>,
    /// Compares only, and times nothing.
    #[arg(long)]
    check: bool,
    /// Synthetic models to time, of the sizes of Llama 3.2 1B and Llama 3.1 8B.
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "1b,8b"
    )]
    sizes: Vec<Size>,
    /// Formats of their weights.
    #[arg(
        long,
        value_name = "FORMATS",
        value_delimiter = ',',
        default_value = "bf16,q8_0,q4_k",
        value_parser = format
    )]
    formats: Vec<NumberFormat>,
    /// Tokens that each sequence holds before what is measured.
    #[arg(long, value_name = "N", default_value_t = 128)]
    context: usize,
    /// Tokens of the prompt that is measured.
    #[arg(long, value_name = "N", default_value_t = 512)]
    prompt: usize,
    /// Times that each figure is measured, in turn with the others; the median counts.
    #[arg(long, value_name = "N", default_value_t = 11)]
    repeats: usize,
}

fn place(name: &str) -> Result<ComputeDevice, String> {
    name.parse().map_err(|error| format!("{error}"))
}

fn format(name: &str) -> Result<NumberFormat, String> {
    name.parse().map_err(|error| format!("{error}"))
}

/// Compares, then measures.
///
/// # Errors
/// If the device cannot be used, or computes something else than the CPU; what was found until then is reported.
pub(super) fn run(args: &DeviceArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    ranges::at_least_one([
        ("repeats", args.repeats),
        ("context", args.context),
        ("prompt", args.prompt),
    ])?;
    report.title(format!("What {} computes", args.device));
    progress::show("comparing operations with the CPU's")?;
    let outcomes = model::device_check::self_check(args.device).map_err(anyhow::Error::msg)?;
    let mut wrong: Vec<String> = Vec::new();
    for outcome in outcomes {
        let is_near = outcome.is_near();
        report.row(
            "operations",
            vec![
                text("outcome", outcome.to_string()),
                text("near", if is_near { "yes" } else { "NO" }),
            ],
        )?;
        if !is_near {
            wrong.push(outcome.to_string());
        }
    }
    if let Some(folder) = &args.golden {
        progress::show("comparing models with Hugging Face's numbers")?;
        for found in golden::compare(folder, args.device)? {
            if !found.is_right() {
                wrong.push(format!("golden model {}", found.name));
            }
            report.row("golden", found.fields())?;
        }
    }
    ensure!(
        wrong.is_empty(),
        "{} computes something else than the CPU: {}",
        args.device,
        wrong.join("; ")
    );
    if args.check {
        Ok(())
    } else {
        time(args, report)
    }
}

fn time(args: &DeviceArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    for &size in &args.sizes {
        for &format in &args.formats {
            progress::show(&format!("{} in {format}", size.name()))?;
            let figures = DeviceTimes::measure(args, size, format)?;
            report.row("device", figures.fields())?;
        }
    }
    report.note(format!(
        "Synthetic weights. {} tokens before; ms of a forward of 1, 5 and 16 positions of one sequence and of one position of {} \
         sequences, every row brought back; GB/s: bytes of the weights over the time of one position; prefill: a prompt of {} \
         tokens whose last row is brought back",
        args.context,
        timed::TOGETHER,
        args.prompt,
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/models");

    fn args(flags: &[&str]) -> DeviceArgs {
        let golden = format!("--golden={GOLDEN}");
        let small = ["--device=cpu", "--sizes=tiny", "--repeats=1", &golden];
        parsed(&[&small[..], &["--context=8", "--prompt=16"], flags].concat())
    }

    #[test]
    fn candles_cpu_device_computes_what_the_cpu_does() {
        let mut report = BenchReport::quiet();
        run(&args(&[]), &mut report).expect("measured");
        assert_eq!(report.rows("operations").len(), 8);
        assert_eq!(report.rows("golden").len(), 7);
        let timed = report.objects("device");
        assert_eq!(timed.len(), 3);
        for row in &timed {
            assert!(row["decode_ms"].as_f64().expect("a number") > 0.0, "{row}");
        }
        let mb = |row: usize| timed[row]["mb"].as_f64().expect("a number");
        assert!(mb(0) > mb(1) && mb(1) > mb(2), "bf16, q8_0, q4_k");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |flags: &[&str]| {
            let refused = run(&args(flags), &mut BenchReport::quiet());
            refused.expect_err("refused").to_string()
        };
        assert!(refused(&["--repeats=0"]).starts_with("--repeats: 0"));
        assert!(refused(&["--context=4000"]).starts_with("--context: 4000"));
        let missing = refused(&["--golden=no/such/folder"]);
        assert!(missing.contains("no/such/folder"), "{missing}");
        if cfg!(not(feature = "cuda")) {
            let missing = refused(&["--device=cuda:3"]);
            assert!(missing.contains("--features cuda"), "{missing}");
        }
    }
}
