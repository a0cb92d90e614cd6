//! A recording, read and looked over.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;
use wire::v1;

use super::evaluation::{Evaluation, ReplayFigures};
use crate::recording::{BadRecording, RecordedBlock, RecordingReader, Rest};

/// A recording in memory. It holds at least one block.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) header: v1::RecordingHeader,
    pub(super) blocks: Vec<RecordedBlock>,
}

/// What a recording says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    /// Prompts with at least one block.
    pub(super) prompts: usize,
    /// Mass that the cut left out of the draft model's sampling distributions: the mean, and the most.
    pub(super) draft_rest: (f64, f64),
    /// The same of the target model's.
    pub(super) target_rest: (f64, f64),
    /// 1 + draft tokens accepted a block, as the generation counted them.
    pub(super) measured_efficiency: f64,
    /// What its distributions say about the generation: exact target, token verification.
    pub(super) expected: ReplayFigures,
}

impl Recording {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is no recording, or a part of it is wrong: which, and at which byte.
    pub(super) fn load(path: &Path) -> anyhow::Result<Self> {
        let file = std::fs::File::open(path)?;
        let mut reader = RecordingReader::new(BufReader::new(file))?;
        let mut blocks = Vec::new();
        loop {
            match reader.next_block() {
                Ok(Some(block)) => blocks.push(block),
                Ok(None) => break,
                // Whoever wrote it was killed, or the disk was full: what is whole is a recording.
                Err(cut @ BadRecording::CutShort { .. }) if !blocks.is_empty() => {
                    anstream::eprintln!("{}: {cut}; the blocks before it are used", path.display());
                    break;
                }
                Err(bad) => return Err(bad.into()),
            }
        }
        anyhow::ensure!(!blocks.is_empty(), "the recording holds no blocks");
        let header = reader.header().clone();
        Ok(Self { header, blocks })
    }

    /// Whether it was made at temperature 0.
    pub(super) fn is_greedy(&self) -> bool {
        let sampling = self.header.sampling.as_ref();
        sampling.and_then(|sampling| sampling.temperature) == Some(0.0)
    }

    /// Looks over the whole of it.
    ///
    /// # Errors
    /// If a draft token cannot have been drawn from its distribution.
    pub(super) fn summary(&self) -> anyhow::Result<Summary> {
        let mut generation = Evaluation::new(
            TargetDistribution::Exact,
            Some(Verification::TOKEN),
            self.is_greedy(),
        );
        for block in &self.blocks {
            generation.add(block, usize::MAX)?;
        }
        let expected = generation.figures().context("no blocks")?;
        let accepted: u64 = (self.blocks.iter())
            .map(|block| u64::from(block.accepted))
            .sum();
        let prompts: BTreeSet<u32> = self.blocks.iter().map(|block| block.prompt).collect();
        let left_out = |mass: fn(&Rest) -> f32| {
            let positions = self.blocks.iter().flat_map(|block| &block.positions);
            mean_and_most(positions.map(|position| position.rest.iter().map(mass).sum()))
        };
        Ok(Summary {
            prompts: prompts.len(),
            draft_rest: left_out(|rest| rest.draft),
            target_rest: left_out(|rest| rest.target),
            measured_efficiency: 1.0 + accepted as f64 / expected.blocks as f64,
            expected,
        })
    }
}

fn mean_and_most(values: impl Iterator<Item = f32>) -> (f64, f64) {
    let (mut count, mut sum, mut most) = (0_u64, 0.0, 0.0_f64);
    for value in values.map(f64::from) {
        count += 1;
        sum += value;
        most = most.max(value);
    }
    (sum / count.max(1) as f64, most)
}
