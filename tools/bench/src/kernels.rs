//! `outrider-bench kernels`: products of a few rows with one matrix, which is what decoding and
//! verifying cost.
//!
//! Time is compared with time of the same run: several rows with one, and one with reading as many
//! bytes and doing nothing else. candle's kernels stand beside.

mod candle;
mod row;
mod subject;
mod timing;

use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use model::{Cpu, WeightFormat};

use crate::read_probe::ReadProbe;
use crate::report::BenchReport;
use outrider::progress;
use row::KernelRow;
use subject::{INPUTS, KernelSubject};
use timing::{Figure, TimeBudget};

/// Bytes of what fits into a usual third-level cache with room to spare, and that the goals for
/// matrices within it hold for.
const WITHIN_CACHE: usize = 16 << 20;
/// Most MB of a matrix.
const MOST_MB: usize = 4096;

/// Arguments of `outrider-bench kernels`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A decoded token reads every weight once, so one row cannot take less time than reading the matrix; and
verifying a block pays if its rows take hardly more than one. The columns say how near that is:

  GB/s         bytes of the matrix over the time
  of read      the same as a share of what reading memory of that size alone reaches
  ratio        time over that of one row, in the same turn: what a block costs
  candle ratio the same for candle's kernel; candle/ours: its time over ours

An asterisk marks what misses its goal: 85 % of the reading at one row, 1.2 times one row at 5 and 2 at 16
for matrices beyond the cache, 1.3 at 5 within it. Run it on a machine that does nothing else.

  outrider-bench kernels                        the table, in under a minute
  outrider-bench kernels --mb 71 --formats q8_0 --rows 1,5,16
  outrider-bench kernels --json | jq 'select(.rows == 5) | {format, mb, ratio}'
  outrider-bench kernels --rows 5,16 --columns format,mb,rows,of_read,ratio")]
pub(super) struct KernelsArgs {
    /// Sizes of the matrices, in MB as the kernel reads them.
    #[arg(
        long,
        value_name = "MBS",
        value_delimiter = ',',
        default_value = "13,71,285"
    )]
    mb: Vec<usize>,
    /// Weight formats.
    #[arg(
        long,
        value_name = "FORMATS",
        value_delimiter = ',',
        default_value = "q8_0,q4_k,f32"
    )]
    formats: Vec<WeightFormat>,
    /// Rows of the products, beside one row.
    #[arg(
        long,
        value_name = "MS",
        value_delimiter = ',',
        default_value = "2,4,5,8,16,64"
    )]
    rows: Vec<usize>,
    /// Seconds for each format and size.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Leaves candle's kernels out.
    #[arg(long)]
    no_candle: bool,
}

/// Measures.
pub(super) fn run(args: &KernelsArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    for &mb in &args.mb {
        ensure!(
            (1..=MOST_MB).contains(&mb),
            "--mb: {mb} is out of range, expected 1 to {MOST_MB}"
        );
    }
    for &rows in &args.rows {
        ensure!(
            (1..=4096).contains(&rows),
            "--rows: {rows} is out of range, expected 1 to 4096"
        );
    }
    ensure!(
        args.seconds > 0.0 && args.seconds <= 3600.0,
        "--seconds: {} is out of range, expected more than 0 and at most 3600",
        args.seconds
    );
    let mut rows = vec![1];
    rows.extend(args.rows.iter().filter(|rows| **rows != 1));
    report.title(format!(
        "Products with (outputs, {INPUTS}) weights, {} threads",
        Cpu::detect().threads.count()
    ));
    for &mb in &args.mb {
        let probe = ReadProbe::new(mb * 1_000_000);
        for &format in &args.formats {
            progress::show(&format!("{format}, {mb} MB"))?;
            let mut subject = KernelSubject::new(format, mb * 1_000_000, !args.no_candle)?;
            let measured = measure(&mut subject, &probe, &rows, args.seconds)
                .with_context(|| format!("{format}, {mb} MB"))?;
            for row in &measured {
                report.row("kernels", row.fields())?;
            }
        }
    }
    report.note("* misses its goal");
    Ok(())
}

/// Measures products of each number of `rows`, the first of them 1.
fn measure(
    subject: &mut KernelSubject,
    probe: &ReadProbe,
    rows: &[usize],
    seconds: f64,
) -> anyhow::Result<Vec<KernelRow>> {
    let bytes = subject.bytes();
    let within_cache = bytes <= WITHIN_CACHE;
    // Many rows take long, and would leave few turns for the others.
    let (few, many): (Vec<usize>, Vec<usize>) = rows.iter().partition(|rows| **rows <= 16);
    let mut measured = Vec::new();
    for (group, share) in [(few, 0.65), (many, 0.35)] {
        if group.is_empty() {
            continue;
        }
        let budget = TimeBudget {
            time: Duration::from_secs_f64(seconds * share),
            warm: within_cache,
        };
        let figures = timing::in_turn(budget, probe, subject, &group)?;
        let read_gbs = probe.bytes() as f64 / figures.read_us / 1e3;
        for (&rows, Figure { ours, candle }) in group.iter().zip(&figures.products) {
            measured.push(KernelRow {
                format: subject.format(),
                bytes,
                outputs: subject.outputs(),
                within_cache,
                rows,
                us: ours.us,
                // The first measured of a group is what the others are compared with.
                ratio: (group[0] == 1).then_some(ours.ratio),
                read_gbs,
                candle_us: candle.map(|candle| candle.us),
                candle_ratio: candle.filter(|_| group[0] == 1).map(|candle| candle.ratio),
            });
        }
    }
    // Those measured apart are compared with the medians.
    let (one, candle_one) = (measured[0].us, measured[0].candle_us);
    for row in &mut measured {
        row.ratio = row.ratio.or(Some(row.us / one));
        let candle = row.candle_us.zip(candle_one).map(|(us, one)| us / one);
        row.candle_ratio = row.candle_ratio.or(candle);
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_probe::ReadProbe;

    fn args() -> KernelsArgs {
        KernelsArgs {
            mb: vec![1],
            formats: vec![WeightFormat::Q8_0],
            rows: vec![2],
            seconds: 0.01,
            no_candle: false,
        }
    }

    #[test]
    fn every_number_of_rows_has_its_line() {
        let probe = ReadProbe::new(1_000_000);
        for format in WeightFormat::ALL {
            let mut subject = KernelSubject::new(format, 1_000_000, true).expect("a subject");
            let near = subject.bytes() as f64 / 1e6;
            assert!((0.85..1.15).contains(&near), "{format}: {near} MB");
            let rows = measure(&mut subject, &probe, &[1, 5, 64], 0.01).expect("measured");
            assert_eq!(
                rows.iter().map(|row| row.rows).collect::<Vec<_>>(),
                [1, 5, 64]
            );
            assert_eq!(rows[0].ratio, Some(1.0));
            for row in &rows {
                assert!(row.us > 0.0 && row.candle_us > Some(0.0), "{row:?}");
                let mut report = BenchReport::quiet();
                report
                    .row("kernels", row.fields())
                    .expect("nothing is printed");
                let json = &report.objects("kernels")[0];
                assert_eq!(json["ratio"].as_f64(), row.ratio);
                assert_eq!(json["format"], format.name());
            }
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |change: fn(&mut KernelsArgs)| {
            let mut args = args();
            change(&mut args);
            run(&args, &mut BenchReport::quiet())
                .expect_err("refused")
                .to_string()
        };
        assert!(refused(|args| args.mb = vec![0]).starts_with("--mb: 0"));
        assert!(refused(|args| args.mb = vec![5000]).starts_with("--mb: 5000"));
        assert!(refused(|args| args.rows = vec![0]).starts_with("--rows: 0"));
        assert!(refused(|args| args.seconds = f64::NAN).starts_with("--seconds: NaN"));
        assert!(refused(|args| args.seconds = 0.0).starts_with("--seconds: 0"));
    }
}
