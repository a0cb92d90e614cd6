//! `outrider-bench parts`: what single parts of a round cost, as multiples of one another, each
//! pair measured in turn in one run.
//!
//! A part is a file with a function `rows`. To add one: the file, and its line in [`MeasuredPart`].

mod forwards;
mod head;
mod max_gram;
mod row;
mod subjects;
mod translation;
mod trees;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use self::{row::PartRow, subjects::Subjects};
use crate::ranges;
use crate::report::BenchReport;

/// Arguments of `outrider-bench parts`.
#[derive(Clone, Debug, Args)]
pub(super) struct PartsArgs {
    /// What to measure.
    #[arg(
        long,
        value_name = "PARTS",
        value_delimiter = ',',
        default_value = "trees,max-gram,head,forwards,translation"
    )]
    parts: Vec<MeasuredPart>,
    /// Tokens that a sequence holds before what is measured.
    #[arg(
        long,
        value_name = "NS",
        value_delimiter = ',',
        default_value = "128,480"
    )]
    contexts: Vec<usize>,
    /// Times that each figure is measured, in turn with what it is compared with; the median counts.
    #[arg(long, value_name = "N", default_value_t = 21)]
    repeats: usize,
    /// Width of the larger model, whose weights are random; a multiple of 64.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    hidden: usize,
    /// Layers of the larger model.
    #[arg(long, value_name = "N", default_value_t = 8)]
    layers: usize,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MeasuredPart {
    /// The forward of a token tree against that of a chain of as many tokens.
    Trees,
    /// A token proposed by Max-Gram, against what it may take.
    MaxGram,
    /// A prediction of an acceptance head against a forward of its draft model.
    Head,
    /// The forward of several positions against that of one.
    Forwards,
    /// What a drafter of another vocabulary reads and writes in a round, against what it may take.
    Translation,
}

impl MeasuredPart {
    fn rows(self, args: &PartsArgs, subjects: &mut Subjects) -> anyhow::Result<Vec<PartRow>> {
        match self {
            Self::Trees => trees::rows(args, subjects),
            Self::MaxGram => max_gram::rows(args),
            Self::Head => head::rows(args, subjects),
            Self::Forwards => forwards::rows(args, subjects),
            Self::Translation => translation::rows(args),
        }
    }
}

impl PartsArgs {
    fn check(&self) -> anyhow::Result<()> {
        ranges::at_least_one([("repeats", self.repeats)])?;
        let least = self.contexts.iter().min().copied().unwrap_or_default();
        ensure!(
            least > 0,
            "--contexts: {least} is out of range, expected at least 1"
        );
        Ok(())
    }
}

/// Measures.
pub(super) fn run(args: &PartsArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    args.check()?;
    report.title("Single parts of a round");
    let mut subjects = Subjects::new(args.hidden, args.layers)?;
    for part in &args.parts {
        for row in part.rows(args, &mut subjects)? {
            report.row("parts", row.fields())?;
        }
    }
    report.note("* above its goal");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> PartsArgs {
        PartsArgs {
            parts: vec![MeasuredPart::Trees],
            contexts: vec![3, 40],
            repeats: 2,
            hidden: 64,
            layers: 1,
        }
    }

    #[test]
    fn every_part_has_its_rows() {
        let args = args();
        let mut subjects = Subjects::new(args.hidden, args.layers).expect("subjects");
        // Two models or texts, two contexts, and what is compared.
        let compared = [
            (MeasuredPart::Trees, 2),
            (MeasuredPart::MaxGram, 1),
            (MeasuredPart::Head, 5),
            (MeasuredPart::Forwards, 4),
            (MeasuredPart::Translation, 1),
        ];
        for (part, compared) in compared {
            let rows = part.rows(&args, &mut subjects).expect("measured");
            assert_eq!(rows.len(), 2 * 2 * compared, "{part:?}");
            for row in &rows {
                assert!(row.ratio > 0.0 && row.us > 0.0, "{row:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |change: fn(&mut PartsArgs)| {
            let mut args = args();
            change(&mut args);
            run(&args, &mut BenchReport::quiet())
                .expect_err("refused")
                .to_string()
        };
        assert!(refused(|args| args.repeats = 0).starts_with("--repeats: 0"));
        assert!(refused(|args| args.contexts = vec![0]).starts_with("--contexts: 0"));
        let error = refused(|args| args.contexts = vec![1 << 30]);
        assert!(error.starts_with("--contexts: 1073741824"), "{error}");
    }
}
