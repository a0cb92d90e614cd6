//! What llama.cpp's memory holds, recorded beside it.
//!
//! Its memory is a number of cells, each the keys and values of one token, held by one or more sequences: a
//! prefix that two of them share, or a tree's trunk beneath its leaves. A token that is appended to several
//! sequences is refused unless all hold the same cells so far, so positions have no gaps and no token ever
//! attends to what only some of its sequences hold.

use thiserror::Error;

/// Most sequences of one context, as llama.cpp has it at compile time.
pub const SEQUENCES: usize = 256;

/// One of the [`SEQUENCES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceId(u8);

/// A token of a batch, and the sequences it is appended to.
#[derive(Clone, Copy, Debug)]
pub struct BatchToken<'a> {
    /// The token.
    pub token: u32,
    /// At least one, each once. All hold the same cells.
    pub sequences: &'a [SequenceId],
    /// Whether the logits of the token after it are wanted.
    pub is_scored: bool,
}

/// Why an entry is refused. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadEntry {
    /// A token without logits.
    #[error("token {token} is not in the vocabulary of {vocab_size}")]
    Token {
        /// The token.
        token: u32,
        /// Tokens of the vocabulary.
        vocab_size: usize,
    },
    /// No sequence, or one of them twice.
    #[error("a token must be of at least one sequence, and of each once")]
    Sequences,
    /// Sequences that do not hold the same cells.
    #[error("a token cannot be of two sequences that hold different tokens")]
    Diverged,
    /// No cell is free.
    #[error("all {cells} cells are held")]
    Full {
        /// How many there are.
        cells: usize,
    },
}

/// Why a batch was not computed. Every sequence holds what it held before.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// An entry was refused.
    #[error(transparent)]
    Entry(#[from] BadEntry),
    /// llama.cpp failed.
    #[error("llama.cpp failed: {0}")]
    Failed(String),
}

/// Which sequence holds which cells.
#[derive(Debug)]
pub struct CellLedger {
    vocab_size: usize,
    /// The cells of each sequence, by position.
    held: Vec<Vec<usize>>,
    free: Vec<SequenceId>,
    /// Number of sequences that hold each cell.
    holders: Vec<u32>,
    free_cells: Vec<usize>,
}

impl CellLedger {
    /// A ledger of `cells` free cells, for tokens below `vocab_size`.
    pub fn new(cells: usize, vocab_size: usize) -> Self {
        Self {
            vocab_size,
            held: vec![Vec::new(); SEQUENCES],
            free: (0..=u8::MAX).rev().map(SequenceId).collect(),
            holders: vec![0; cells],
            free_cells: (0..cells).rev().collect(),
        }
    }

    /// Has `cells` cells from now on, all of them free; sequences that are taken stay so.
    pub fn resize(&mut self, cells: usize) {
        debug_assert!(self.is_empty());
        self.holders = vec![0; cells];
        self.free_cells = (0..cells).rev().collect();
    }

    /// Takes a free sequence, which is empty; none if all are in use.
    pub fn take(&mut self) -> Option<SequenceId> {
        self.free.pop()
    }

    /// Frees what a sequence holds, for another to take it. Nobody may use it from now on.
    pub fn give_back(&mut self, sequence: SequenceId) {
        self.truncate(sequence, 0);
        self.free.push(sequence);
    }

    /// Tokens that a sequence holds.
    pub fn len(&self, sequence: SequenceId) -> usize {
        self.held[sequence.index()].len()
    }

    /// Whether no cell is held.
    pub fn is_empty(&self) -> bool {
        self.used() == 0
    }

    /// Cells held, each once.
    pub fn used(&self) -> usize {
        self.cells() - self.free_cells.len()
    }

    /// All cells, free or held.
    pub fn cells(&self) -> usize {
        self.holders.len()
    }

    /// The tokens that each sequence holds now, for [`CellLedger::rewind`].
    pub fn mark(&self) -> Vec<usize> {
        self.held.iter().map(Vec::len).collect()
    }

    /// Removes what was appended since `mark`. Returns the sequences that changed, with what they hold now.
    pub fn rewind(&mut self, mark: &[usize]) -> Vec<(SequenceId, usize)> {
        let grown = (0..=u8::MAX).map(SequenceId).zip(mark);
        let grown = grown.filter(|(sequence, len)| self.len(*sequence) > **len);
        let grown: Vec<_> = grown.map(|(sequence, len)| (sequence, *len)).collect();
        for &(sequence, len) in &grown {
            self.truncate(sequence, len);
        }
        grown
    }

    /// Records a token at the end of its sequences. Returns its position.
    ///
    /// # Errors
    /// [`BadEntry`]; nothing has changed then.
    pub fn append(&mut self, entry: &BatchToken<'_>) -> Result<usize, BadEntry> {
        let BatchToken {
            token, sequences, ..
        } = *entry;
        if token as usize >= self.vocab_size {
            let vocab_size = self.vocab_size;
            return Err(BadEntry::Token { token, vocab_size });
        }
        let is_repeated =
            |(index, sequence): (usize, &SequenceId)| sequences[..index].contains(sequence);
        if sequences.is_empty() || sequences.iter().enumerate().any(is_repeated) {
            return Err(BadEntry::Sequences);
        }
        let len = self.len(sequences[0]);
        if sequences[1..]
            .iter()
            .any(|&other| !self.agree(sequences[0], other, len))
        {
            return Err(BadEntry::Diverged);
        }
        let cells = self.cells();
        let cell = self.free_cells.pop().ok_or(BadEntry::Full { cells })?;
        self.holders[cell] = sequences.len() as u32;
        for sequence in sequences {
            self.held[sequence.index()].push(cell);
        }
        Ok(len)
    }

    /// Makes `to` hold the first `len` cells that `from` holds, with it. Returns the positions that are new to it.
    ///
    /// # Errors
    /// [`BadEntry::Diverged`] if `from` holds fewer, or `to` other cells or more; nothing has changed then.
    pub fn copy(
        &mut self,
        from: SequenceId,
        to: SequenceId,
        len: usize,
    ) -> Result<std::ops::Range<usize>, BadEntry> {
        let first = self.len(to);
        let common = &self.held[from.index()];
        if common.len() < len || first > len || common[..first] != self.held[to.index()][..] {
            return Err(BadEntry::Diverged);
        }
        let new = common[first..len].to_vec();
        for &cell in &new {
            self.holders[cell] += 1;
        }
        self.held[to.index()].extend(new);
        Ok(first..len)
    }

    /// Removes the tokens from `len` on. Returns whether there were any.
    pub fn truncate(&mut self, sequence: SequenceId, len: usize) -> bool {
        let held = &mut self.held[sequence.index()];
        if held.len() <= len {
            return false;
        }
        for cell in held.split_off(len) {
            self.holders[cell] -= 1;
            if self.holders[cell] == 0 {
                self.free_cells.push(cell);
            }
        }
        true
    }

    /// Whether both sequences hold the same `len` cells and no more. A cell is only ever behind the same cells,
    /// so the last one tells.
    fn agree(&self, one: SequenceId, other: SequenceId, len: usize) -> bool {
        let [one, other] = [one, other].map(|sequence| &self.held[sequence.index()]);
        other.len() == len && one.last() == other.last()
    }
}

impl SequenceId {
    /// Its number, below [`SEQUENCES`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

#[cfg(test)]
mod tests;
