//! The file that is written, block by block.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use wire::v1;

use crate::recording::{self, RecordedBlock};

/// A recording in the making.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    out: BufWriter<std::fs::File>,
    blocks: u64,
    positions: u64,
    accepted: u64,
    bytes: u64,
}

impl File {
    /// Creates the file with its header.
    ///
    /// # Errors
    /// If it exists already or cannot be written.
    pub(super) fn create(path: &Path, header: v1::RecordingHeader) -> anyhow::Result<Self> {
        let created = std::fs::File::create_new(path);
        let file =
            created.with_context(|| format!("--out: {} cannot be created", path.display()))?;
        let mut file = Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            blocks: 0,
            positions: 0,
            accepted: 0,
            bytes: 0,
        };
        file.write(&recording::header_bytes(header))?;
        file.flush()?;
        Ok(file)
    }

    /// Appends a block.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn append(&mut self, block: RecordedBlock) -> anyhow::Result<()> {
        self.blocks += 1;
        self.positions += block.drafts.len() as u64;
        self.accepted += u64::from(block.accepted);
        self.write(&recording::block_bytes(block))
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        let flushed = self.out.flush();
        flushed.with_context(|| format!("--out: {} cannot be written", self.path.display()))
    }

    /// Removes the file, in which there is nothing.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(super) fn remove(self) -> anyhow::Result<()> {
        let removed = std::fs::remove_file(&self.path);
        removed.with_context(|| format!("--out: {} cannot be removed", self.path.display()))
    }

    /// Draft tokens so far.
    pub(super) fn positions(&self) -> u64 {
        self.positions
    }

    /// What the file holds, in words.
    pub(super) fn summary(&self) -> String {
        let Self {
            path,
            blocks,
            positions,
            accepted,
            bytes,
            ..
        } = self;
        let per_block = *accepted as f64 / (*blocks).max(1) as f64;
        format!(
            "{}: {blocks} blocks, {positions} positions, {:.2} draft tokens accepted a block, {:.1} MB",
            path.display(),
            per_block,
            *bytes as f64 / 1e6
        )
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.bytes += bytes.len() as u64;
        let written = self.out.write_all(bytes);
        written.with_context(|| format!("--out: {} cannot be written", self.path.display()))
    }
}
