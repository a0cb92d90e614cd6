//! Recordings of distributions: the file format of `recording.proto`, block by block.
//!
//! Distributions are cut to their most likely tokens. The rest of the vocabulary is evaluated as two more
//! tokens: together those that the draft model finds likelier, and together the others. So the
//! overlap of q and p is exact, and anything else up to the mass of the rest. What a deferral rule judges
//! by (maximum, entropy, cross entropy) is recorded of the whole distributions.

mod block;
mod convert;
mod cut;

use std::io::{ErrorKind, Read};

use prost::Message;
use wire::v1;

pub(crate) use block::{BadRecord, RecordedBlock, RecordedDistribution, RecordedPosition, Rest};
use convert::{block_from_wire, block_to_wire};
pub(crate) use cut::{WholeProbs, cut};

/// What every recording begins with.
pub(crate) const FORMAT: &str = "outrider.recording";

/// Version of the format written, and the only one read.
pub(crate) const VERSION: u32 = 1;

/// Field tags of `Recording`: number 1 and 2, both messages.
const HEADER: u8 = 0x0a;
const BLOCK: u8 = 0x12;

/// Longer than any header: model names are short.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRecording {
    /// It does not begin like one.
    #[error("not a recording: {0}")]
    Other(&'static str),
    /// Written in another version of the format.
    #[error("written in version {0} of the format, and this program reads version {VERSION}")]
    Version(u32),
    /// It ends within a record.
    #[error("cut short: block {block} begins at byte {at} and is not complete")]
    CutShort {
        /// The block, from 1.
        block: u64,
        /// Where it begins.
        at: u64,
    },
    /// A record is none.
    #[error("block {block}, at byte {at}: {problem}")]
    Block {
        /// The block, from 1.
        block: u64,
        /// Where it begins.
        at: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot be read")]
    Io(#[from] std::io::Error),
}

/// The bytes a recording begins with. Format and version are set here.
pub(crate) fn header_bytes(header: v1::RecordingHeader) -> Vec<u8> {
    let header = v1::RecordingHeader {
        format: FORMAT.to_owned(),
        version: VERSION,
        ..header
    };
    let recording = v1::Recording {
        header: Some(header),
        blocks: Vec::new(),
    };
    recording.encode_to_vec()
}

/// The bytes of one block, to be appended.
pub(crate) fn block_bytes(block: RecordedBlock) -> Vec<u8> {
    let recording = v1::Recording {
        header: None,
        blocks: vec![block_to_wire(block)],
    };
    recording.encode_to_vec()
}

/// Reads a recording, one block after the other.
#[derive(Debug)]
pub(crate) struct RecordingReader<R> {
    input: R,
    header: v1::RecordingHeader,
    /// Bytes read.
    at: u64,
    blocks: u64,
    /// Whether sampling distributions and unscaled distributions differ.
    differ: bool,
}

impl<R: Read> RecordingReader<R> {
    /// Begins to read `input`, which should be buffered.
    ///
    /// # Errors
    /// If it is no recording, or one of another version.
    pub(crate) fn new(mut input: R) -> Result<Self, BadRecording> {
        let mut at = 0;
        if read_byte(&mut input, &mut at)? != Some(HEADER) {
            return Err(BadRecording::Other("it has no header"));
        }
        let too_short = BadRecording::Other("it ends within the header");
        let Some(length) = read_length(&mut input, &mut at)? else {
            return Err(too_short);
        };
        if length > MAX_HEADER_BYTES {
            return Err(BadRecording::Other("it has no header"));
        }
        let Some(bytes) = read_bytes(&mut input, &mut at, length)? else {
            return Err(too_short);
        };
        let header = v1::RecordingHeader::decode(&bytes[..])
            .ok()
            .filter(|header| header.format == FORMAT)
            .ok_or(BadRecording::Other("its header is another file's"))?;
        if header.version != VERSION {
            return Err(BadRecording::Version(header.version));
        }
        let sampling = header.sampling.clone().unwrap_or_default();
        let cuts = sampling.top_k > 0 || sampling.top_p.is_some_and(|top_p| top_p < 1.0);
        let differ = cuts || sampling.min_p > 0.0 || sampling.temperature.unwrap_or(1.0) != 1.0;
        Ok(Self {
            input,
            header,
            at,
            blocks: 0,
            differ,
        })
    }

    /// What was recorded, and how.
    pub(crate) fn header(&self) -> &v1::RecordingHeader {
        &self.header
    }

    /// The next block, checked; none at the end.
    ///
    /// # Errors
    /// If the file ends within it, or it does not hold what two models can have said.
    pub(crate) fn next_block(&mut self) -> Result<Option<RecordedBlock>, BadRecording> {
        let at = self.at;
        let Some(tag) = read_byte(&mut self.input, &mut self.at)? else {
            return Ok(None);
        };
        self.blocks += 1;
        let block = self.blocks;
        let bad = |problem: String| BadRecording::Block { block, at, problem };
        if tag != BLOCK {
            return Err(bad(format!(
                "tag {tag:#04x} is not a block's, {BLOCK:#04x}"
            )));
        }
        let cut_short = BadRecording::CutShort { block, at };
        let Some(length) = read_length(&mut self.input, &mut self.at)? else {
            return Err(cut_short);
        };
        let Some(bytes) = read_bytes(&mut self.input, &mut self.at, length)? else {
            return Err(cut_short);
        };
        let wire = v1::RecordedBlock::decode(&bytes[..]).map_err(|error| bad(error.to_string()))?;
        let recorded = block_from_wire(wire).map_err(|error| bad(error.to_string()))?;
        let checked = recorded.check(self.header.vocab_size, self.differ);
        checked.map_err(|error| bad(error.to_string()))?;
        Ok(Some(recorded))
    }
}

fn read_byte(input: &mut impl Read, at: &mut u64) -> Result<Option<u8>, std::io::Error> {
    let mut byte = [0];
    loop {
        match input.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => {
                *at += 1;
                return Ok(Some(byte[0]));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A length in protobuf's variable form; none if the input ends before it does.
fn read_length(input: &mut impl Read, at: &mut u64) -> Result<Option<u64>, BadRecording> {
    let mut length = 0;
    for shift in (0..64).step_by(7) {
        let Some(byte) = read_byte(input, at)? else {
            return Ok(None);
        };
        length |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(Some(length));
        }
    }
    Ok(Some(u64::MAX))
}

/// The next `length` bytes; none if there are fewer. Takes memory for what is there only.
fn read_bytes(
    input: &mut impl Read,
    at: &mut u64,
    length: u64,
) -> Result<Option<Vec<u8>>, std::io::Error> {
    let mut bytes = Vec::new();
    let found = input.take(length).read_to_end(&mut bytes)? as u64;
    *at += found;
    Ok((found == length).then_some(bytes))
}

#[cfg(test)]
mod tests;
